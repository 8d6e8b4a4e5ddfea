// The memory that is predicted is what the trainer's device counts, kind by kind.
#include "lib/replay/memory.h"

#include <algorithm>

#include "lib/arch/optimizers.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

KindBytes peak_of_run(const RunConfig& config, int world_size, bool validates) {
  return measure_run(config, world_size, validates).peaks[0];
}

RunMemory predicted(const RunConfig& config, int world_size) {
  return memory_of_run(plan_run(config, world_size), network_of("inproc", world_size), 0, {});
}

TEST_CASE("the device's tracker finds the peak that is predicted, to the byte", "[replay]") {
  const auto [folder, strategy, world_size, hold, precision] = GENERATE(from_range(combinations(
      golden_runs(), all_strategies(), std::vector<int>{1, 2, 3, 4},
      std::vector<std::string>{"true", "false"}, std::vector<std::string>{"fp32", "bf16"})));
  CAPTURE(folder, strategy, world_size, hold, precision);
  // On one rank nothing is sharded: one model is enough for all strategies.
  if (world_size == 1 && folder != "gpt2-accum") return;
  std::vector<std::string> sets = with_groups(strategy, world_size);
  sets.insert(sets.end(), {"train.micro_batch=1", "train.steps=2",
                           "parallel.hold_gradients=" + hold, "train.precision=" + precision});
  const RunConfig config = golden_config(folder, 1, sets);
  CHECK(peak_of_run(config, world_size, false) == predicted(config, world_size).peak);
}

TEST_CASE("recomputation's memory is predicted, and falls with what is not kept", "[replay]") {
  const auto [folder, strategy, precision] = GENERATE(
      from_range(combinations(std::vector<std::string>{"gpt2-accum", "llama-tiny"},
                              all_strategies(), std::vector<std::string>{"fp32", "bf16"})));
  CAPTURE(folder, strategy, precision);
  std::vector<uint64_t> peaks;
  for (const char* recompute : {"none", "selective", "full"}) {
    std::vector<std::string> sets = with_groups(strategy, 4);
    sets.insert(sets.end(), {"model.layers=4", "train.precision=" + precision,
                             fmt::format("train.recompute={}", recompute)});
    const RunConfig config = small_run(sets, folder);
    const KindBytes peak = peak_of_run(config, 4, false);
    CHECK(peak == predicted(config, 4).peak);
    peaks.push_back(total_of(peak));
  }
  CHECK(peaks[0] > peaks[1]);
  CHECK(peaks[1] > peaks[2]);
}

TEST_CASE("the memory of kept outputs is predicted, and grows with them", "[replay]") {
  const auto [folder, strategy, recompute, precision] = GENERATE(
      from_range(combinations(tiny_runs(), std::vector<std::string>{"ddp", "zero2", "zero3"},
                              std::vector<std::string>{"none", "selective", "full"},
                              std::vector<std::string>{"fp32", "bf16"})));
  CAPTURE(folder, strategy, recompute, precision);
  std::vector<uint64_t> peaks;
  for (const char* keep : {"auto", "none", "norms", "all"}) {
    const RunConfig config =
        small_run({"model.layers=4", "train.valid_batches=1",
                   "data.valid=" + golden_path(folder, "tokens.i32"),
                   "parallel.strategy=" + strategy, "train.recompute=" + recompute,
                   "train.precision=" + precision, fmt::format("train.keep={}", keep)},
                  folder);
    const KindBytes peak = peak_of_run(config, 2, true);
    CHECK(peak == predicted(config, 2).peak);
    peaks.push_back(total_of(peak));
  }
  CHECK(peaks[0] == peaks[1]);
  // Of blocks that are made again, one at a time; most may live in the loss.
  const size_t least_growth = recompute == "none" ? 1 : 0;
  CHECK(peaks[1] + least_growth <= peaks[2]);
  CHECK(peaks[2] + least_growth <= peaks[3]);
}

TEST_CASE("what wraps and prefetching hold is predicted; smaller wraps hold less", "[replay]") {
  const std::string optimizer = GENERATE("adamw", "muon");
  const auto peak_with = [&](const Arguments& more) {
    const Arguments sets =
        Arguments{"model.layers=4", "parallel.strategy=zero3", "optim.name=" + optimizer} + more;
    const KindBytes peak = peak_of_run(small_run(sets), 2, false);
    CHECK(peak == predicted(small_run(sets), 2).peak);
    return total_of(peak);
  };
  const uint64_t each_block = peak_with({});
  CHECK(peak_with({"parallel.wrap=none"}) > each_block);
  CHECK(peak_with({"parallel.wrap=match", "parallel.wrap_units=[\"h.0\", \"h.2\"]"}) > each_block);
  CHECK(peak_with({"parallel.forward_prefetch=false", "parallel.backward_prefetch=none"}) <=
        each_block);
}

TEST_CASE("what is gathered early and kept for reuse is predicted", "[replay]") {
  const std::string keeping = GENERATE(from_range(kKeepings));
  const std::string strategy = GENERATE("zero3", "shard_grad_op", "zero3_hpz");
  CAPTURE(keeping, strategy);
  std::vector<std::string> sets = {"model.layers=4", "train.grad_accum=2",
                                   "parallel.strategy=" + strategy};
  const KindBytes usual = predicted(small_run(sets), 2).peak;
  sets.push_back(keeping);
  const KindBytes peak = peak_of_run(small_run(sets), 2, false);
  CHECK(peak == predicted(small_run(sets), 2).peak);
  // What shard_grad_op keeps from forward to backward is all that most of these could.
  if (strategy != "shard_grad_op") CHECK(peak != usual);
}

TEST_CASE("every optimizer's memory is predicted", "[replay]") {
  const std::string optimizer(GENERATE(from_range(optimizers())).name);
  const std::string strategy = GENERATE("ddp", "zero2", "zero3");
  CAPTURE(optimizer, strategy);
  const RunConfig config = small_run({"parallel.strategy=" + strategy, "optim.name=" + optimizer});
  CHECK(peak_of_run(config, 3, false) == predicted(config, 3).peak);
}

TEST_CASE("what a validation takes besides the step is predicted", "[replay]") {
  const int world_size = GENERATE(1, 3);
  const std::string strategy = GENERATE("ddp", "zero3", "hybrid_shard");
  const RunConfig config = golden_config(
      "gpt2-tiny", 1,
      {"parallel.strategy=" + strategy, "train.micro_batch=1", "train.valid_batches=1",
       fmt::format("parallel.shard_size={}", int(strategy == "hybrid_shard")),
       "data.valid=" + golden_path("gpt2-tiny", "tokens.i32")});
  CHECK(peak_of_run(config, world_size, true) == predicted(config, world_size).peak);
}

TEST_CASE("what offloaded state leaves on the device is predicted", "[replay]") {
  const TemporaryDirectory directory;
  const auto [optimizer, parameters, ratio] =
      GENERATE(table<std::string, std::string, std::string>({{"memory", "none", "1"},
                                                             {"memory", "none", "0.3"},
                                                             {"file", "none", "1"},
                                                             {"file", "memory", "1"},
                                                             {"memory", "memory", "1"}}));
  const int world_size = GENERATE(1, 3);
  const std::string precision = GENERATE("fp32", "bf16");
  CAPTURE(optimizer, parameters, ratio, world_size, precision);
  std::vector<std::string> sets = {
      "parallel.strategy=zero3",        "train.precision=" + precision,
      "offload.optimizer=" + optimizer, "offload.parameters=" + parameters,
      "offload.ratio=" + ratio,         "offload.step_tile=5000",
      "train.valid_batches=1",          "data.valid=" + golden_path("gpt2-accum", "tokens.i32")};
  if (optimizer == "file") sets.push_back("offload.path=" + directory.path());
  const RunConfig config = small_run(sets);
  CHECK(peak_of_run(config, world_size, true) == predicted(config, world_size).peak);
}

TEST_CASE("the arena is never fuller than it is large, and the peak names its operation",
          "[replay]") {
  const RunConfig config = small_run({"parallel.strategy=zero3"});
  const StepProgram program = plan_run(config, 4).step.program;
  const RunMemory memory = predicted(config, 4);
  const MemoryReplay& step = memory.step;
  const uint64_t fullest = total_of(step.live[size_t(step.peak)]);
  for (const KindBytes& live : step.live) CHECK(total_of(live) <= fullest);
  CHECK(fullest <= total_of(step.allocated));
  CHECK(total_of(step.allocated) == total_of(step.persistent) + step.arena_bytes);
  CHECK(memory.peak_at == describe(program.ops[size_t(step.peak)]));
}

TEST_CASE("plans count less workspace for attention in any order", "[replay]") {
  const auto workspace = [](const std::string& deterministic) {
    const RunConfig config =
        small_run({"train.precision=bf16", "model.context=4096", "data.sequence=4096",
                   "train.deterministic=" + deterministic});
    return terms_of_device(config, plan_run(config, 1), true).workspace_bytes;
  };
  CHECK(workspace("off") < workspace("world-size"));
}

TEST_CASE("cuDNN's workspace counts unless documents are known to be kept apart", "[replay]") {
  RunConfig config =
      small_run({"train.precision=bf16", "model.context=4096", "data.sequence=4096"});
  const auto planned = [&](RowDocuments documents) {
    config.data.documents = documents;
    const RunPlan plan = plan_run(config, 1);
    const DeviceTerms terms = terms_of_device(config, plan, true);
    return std::pair(terms.workspace_bytes,
                     total_of(memory_of_run(plan, network_of("inproc", 1), 0, terms).peak));
  };
  const auto one = planned(RowDocuments::kNotApart), several = planned(RowDocuments::kApart),
             unknown = planned(RowDocuments::kUnknown);
  CHECK(several.first < one.first);
  CHECK(unknown.first == one.first);
  CHECK(unknown.second > one.second);
  CHECK(one.second > several.second);
}

TEST_CASE("a GPU's reserve has room for the largest trial, unless nothing is timed", "[replay]") {
  const auto reserve = [](const std::string& cache, const RunConfig& like) {
    RunConfig config = like;
    config.train.gemm_cache = cache;
    return terms_of_device(config, plan_run(config, 1), true).reserve_bytes;
  };
  const RunConfig config = small_run({"train.micro_batch=4"}, GENERATE("gpt2-tiny", "llama-tiny"));
  size_t largest = 0;
  for (const UnitSpec& unit : plan_run(config, 1).architecture.units)
    for (const TensorSpec& tensor : unit.tensors) largest = std::max(largest, tensor.count());
  CHECK(reserve("auto", config) >= reserve("off", config) + largest * sizeof(float));
  CHECK(reserve("off", config) == uint64_t{1} << 30);
  CHECK(terms_of_device(config, plan_run(config, 1), false).reserve_bytes == 0);
}

TEST_CASE("what is taken before the first step counts if the step takes less", "[replay]") {
  const RunPlan plan = plan_run(small_run({}), 1);
  const Network network = network_of("shm", 1);
  const RunMemory without = memory_of_run(plan, network, 0, {});
  const RunMemory with = memory_of_run(plan, network, 0, {.start_bytes = 1000});
  CHECK(total_of(with.peak) == total_of(without.peak) + 1000);
  CHECK(with.peak_phase == "start");
  CHECK(without.peak_phase == "step");
}

}  // namespace
}  // namespace gxp
