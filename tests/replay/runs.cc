#include "tests/replay/runs.h"

#include <fmt/format.h>

#include <future>
#include <tuple>
#include <type_traits>

namespace gxp {

RunConfig small_run(std::vector<std::string> sets, const std::string& folder) {
  for (const char* set : {"train.steps=2", "train.micro_batch=1"}) sets.insert(sets.begin(), set);
  RunConfig config = golden_config(folder, 1, sets);
  config.model.init = "normal";
  return config;
}

std::vector<std::vector<std::string>> all_strategies() {
  std::vector<std::vector<std::string>> all;
  for (const Strategy& strategy : strategies())
    all.push_back({fmt::format("parallel.strategy={}", strategy.name)});
  for (const char* name : {"zero1", "zero2", "hybrid_shard", "hybrid_shard_zero2", "zero3_hpz"}) {
    for (const char* over : {"false", "true"})
      all.push_back({fmt::format("parallel.strategy={}", name), "parallel.shard_size=GROUP",
                     fmt::format("parallel.optimizer_over_replicas={}", over)});
  }
  return all;
}

std::vector<std::string> with_groups(std::vector<std::string> sets, int world_size) {
  int size = world_size % 2 == 0 ? 2 : 3;
  if (world_size % size != 0 || world_size == size) size = 1;
  for (std::string& set : sets) {
    const size_t place = set.find("GROUP");
    if (place != std::string::npos) set.replace(place, 5, std::to_string(size));
  }
  return sets;
}

RunMeasure measure_run(const RunConfig& config, int world_size, bool validates) {
  InprocWorld world(world_size);
  const auto rank = [&](int number) {
    Backend backend = make_backend(config.train, world_size);
    Communicator communicator(world.make_transport(number), *backend.device, {});
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    trainer.step(false);
    const uint64_t sent = trainer.step(false).wire_bytes;
    if (validates) trainer.validate();
    communicator.barrier();
    std::array<uint64_t, kStorageCount> beside{};
    for (const Storage storage : {Storage::kHost, Storage::kFile})
      beside[size_t(storage)] = trainer.offloaded().bytes(storage);
    return std::tuple(backend.device->tracker().peak().by_kind, sent, beside);
  };
  std::vector<std::future<std::invoke_result_t<decltype(rank), int>>> running;
  for (int i = 0; i < world_size; ++i) running.push_back(std::async(std::launch::async, rank, i));
  RunMeasure measure;
  for (auto& each : running) {
    const auto [peak, sent, beside] = each.get();
    measure.peaks.push_back(peak);
    measure.sent.push_back(sent);
    measure.beside.push_back(beside);
  }
  return measure;
}

Network network_of(const std::string& transport, int world_size) {
  return {.world_size = world_size,
          .transport = transport,
          .shared_arena = transport.starts_with("shm")};
}

void check_as_planned(const RunConfig& config, int world_size) {
  const RunPlan plan = plan_run(config, world_size);
  const Network network = network_of("inproc", world_size);
  const std::vector<OpTraffic> traffic = traffic_of(plan.step.program, network);
  const RunMeasure run = measure_run(config, world_size);
  for (int rank = 0; rank < world_size; ++rank) {
    CHECK(run.peaks[size_t(rank)] == memory_of_run(plan, network, rank, {}).peak);
    CHECK(run.sent[size_t(rank)] == sent_by(traffic, rank));
  }
}

}  // namespace gxp
