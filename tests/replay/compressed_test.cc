// What comm.codec and comm.gather_codec send and hold is predicted, to the byte.
#include "lib/collective/compress/codec.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/combinations.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

// Of a rank, in a step and until its end.
struct Used {
  uint64_t sent = 0, between_hosts = 0;
  KindBytes peak{};
  bool operator==(const Used&) const = default;
};

// On two hosts.
std::vector<Used> used_by(const RunConfig& config, int world_size) {
  World world("shm+tcp", world_size);
  std::vector<std::future<Used>> running;
  for (int rank = 0; rank < world_size; ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank] {
      const std::unique_ptr<Store> store = world.join_store(rank);
      Backend backend = make_backend(config.train, world_size);
      Communicator communicator(world.join(*store), *backend.device, {});
      Trainer trainer(config, communicator, backend);
      trainer.initialise_weights();
      trainer.step(false);
      const StepResult step = trainer.step(false);
      if (has_validation(config)) (void)trainer.validate();
      communicator.barrier();
      store->close();
      return Used{step.wire_bytes, step.wire_bytes_between_hosts,
                  backend.device->tracker().peak().by_kind};
    }));
  }
  std::vector<Used> used;
  for (auto& each : running) used.push_back(each.get());
  return used;
}

Network two_hosts(int world_size) {
  Network network = network_of("shm+tcp", world_size);
  for (int rank = 0; rank < world_size; ++rank)
    network.hosts.push_back(2 * rank < world_size ? 0 : 1);
  return network;
}

std::vector<Used> predicted_use(const RunConfig& config, int world_size) {
  const RunPlan plan = plan_run(config, {world_size, 2});
  const Network network = two_hosts(world_size);
  const std::vector<OpTraffic> traffic = traffic_of(plan.step.program, network);
  std::vector<Used> used;
  for (int rank = 0; rank < world_size; ++rank)
    used.push_back({sent_by(traffic, rank), sent_between_hosts_by(traffic, rank),
                    memory_of_run(plan, network, rank, {}).peak});
  return used;
}

// Of 4 ranks.
void check_use(const Arguments& sets, const Arguments& more) {
  const RunConfig config = small_run(with_groups(sets, 4) + more);
  const std::vector<Used> used = used_by(config, 4);
  const std::vector<Used> planned = predicted_use(config, 4);
  for (size_t rank = 0; rank < used.size(); ++rank) {
    CAPTURE(rank);
    CHECK(used[rank].sent == planned[rank].sent);
    CHECK(used[rank].between_hosts == planned[rank].between_hosts);
    CHECK(used[rank].peak == planned[rank].peak);
  }
}

const std::vector<std::string> kMicros = {"parallel.bucket_bytes=20000", "train.grad_accum=2",
                                          "parallel.hold_gradients=false"};

TEST_CASE("what a codec sends and holds is predicted for every strategy", "[replay]") {
  const auto [strategy, codec] = GENERATE(
      from_range(combinations(all_strategies(), std::vector<std::string>{"int8", "int4"})));
  CAPTURE(strategy, codec);
  std::vector<std::string> more = kMicros;
  more.push_back("comm.codec=" + codec);
  check_use(strategy, more);
}

TEST_CASE("what a gather codec sends and holds is predicted", "[replay]") {
  const auto [sets, codec] = GENERATE(from_range(combinations(
      std::vector<std::vector<std::string>>{
          {"parallel.strategy=zero3"},
          {"parallel.strategy=zero3", "train.precision=bf16", "lora.rank=4"},
          {"parallel.strategy=zero3", "comm.codec=int4"},
          {"parallel.strategy=zero3", "train.valid_batches=1",
           "data.valid=" + golden_path("gpt2-accum", "tokens.i32")},
          {"parallel.strategy=full_shard", "offload.optimizer=memory", "offload.parameters=memory"},
          {"parallel.strategy=shard_grad_op", "parallel.prefetch_wraps=3"},
          {"parallel.strategy=hybrid_shard", "parallel.shard_size=GROUP"},
          {"parallel.strategy=zero3_hpz", "parallel.shard_size=GROUP", "comm.codec=int8"}},
      std::vector<std::string>{"int8", "bf16"})));
  CAPTURE(sets, codec);
  std::vector<std::string> more = kMicros;
  more.push_back("comm.gather_codec=" + codec);
  check_use(sets, more);
}

// What is sent between two hosts.
double bytes_between(const std::vector<std::string>& sets) {
  uint64_t sum = 0;
  for (const Used& rank : predicted_use(small_run(sets), 2)) sum += rank.between_hosts;
  return double(sum);
}

TEST_CASE("int8 sends a quarter of the gradients' bytes between hosts", "[replay]") {
  const auto between = [](const std::string& codec) {
    return bytes_between({"comm.codec=" + codec});
  };
  CHECK(between("int8") / between("none") > 0.25);
  CHECK(between("int8") / between("none") < 0.30);
  CHECK(between("int4") / between("none") < 0.16);
}

TEST_CASE("zero3 in int8 sends a quarter of its bytes between hosts", "[replay]") {
  const auto between = [](const std::string& codec, const std::string& gather_codec) {
    return bytes_between(
        {"parallel.strategy=zero3", "comm.codec=" + codec, "comm.gather_codec=" + gather_codec});
  };
  const double all = between("none", "none");
  CHECK(between("int8", "int8") / all > 0.25);
  CHECK(between("int8", "int8") / all < 0.30);
  // Twice gathered, once reduced, but for the head, which is gathered once.
  CHECK(between("none", "int8") / all < 0.60);
}

}  // namespace
}  // namespace gxp
