// The step program on the simulated device, which runs its lanes in random legal orders and looks
// for accesses that nothing orders.
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/support/sim_device.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

TEST_CASE("a step has no race and gives the same losses in every legal order", "[train]") {
  const auto [strategy, recompute, kept, order] = GENERATE(from_range(combinations(
      std::vector<std::string>{"ddp", "zero1", "zero2", "zero3", "shard_grad_op", "hybrid_shard"},
      std::vector<std::string>{"none", "full"}, std::vector<std::string>{"fp32", "bf16"},
      std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8})));
  const uint64_t seed = order;
  CAPTURE(strategy, recompute, kept, seed);
  std::vector<std::string> sets = {"parallel.bucket_bytes=8000",
                                   "train.steps=3",
                                   "parallel.strategy=" + strategy,
                                   "model.layers=2",
                                   "model.init=normal",
                                   "train.recompute=" + recompute,
                                   "train.grad_accum_dtype=" + kept};
  const int world_size = strategy == "hybrid_shard" ? 4 : 2;
  if (world_size == 4) sets.insert(sets.end(), {"parallel.shard_size=2", "train.micro_batch=1"});
  const RunConfig config = golden_config("gpt2-accum", 2, sets);
  const std::vector<Trained> plain = train_on_ranks(config, world_size);
  const auto losses = run_ranks(world_size, [&](Communicator& communicator) {
    Backend backend = make_host_backend(std::make_unique<SimDevice>(seed), config.train, 1);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) losses.push_back(trainer.step(false).loss);
    return losses;
  });
  for (size_t step = 0; step < 3; ++step) CHECK(losses[0][step] == plain[0].steps[step].loss);
}

// Runs `program` with operations that do nothing: the simulated device looks at what they would
// touch.
void run_idle(const StepProgram& program, uint64_t seed) {
  SimDevice device(seed);
  const ProgramMemory memory(device, program);
  Lanes lanes(device);
  ProgramRunner runner(lanes, program, memory, [](const Op&) { return [] {}; });
  for (int step = 0; step < 2; ++step) runner.run(Deadline::after(std::chrono::seconds(60)));
}

TEST_CASE("taking any single event out of a step is found", "[train]") {
  const std::string strategy =
      GENERATE("ddp", "zero1", "zero2", "zero3", "shard_grad_op", "hybrid_shard");
  const DType compute = GENERATE(DType::kF32, DType::kBF16);
  const Architecture architecture = make_architecture(golden_config("gpt2-tiny", 2).model, compute);
  const bool hybrid = find_strategy(strategy).hybrid;
  const StepShape shape{.rows = 2,
                        .positions = 32,
                        .grad_accum = 2,
                        .world_size = 4,
                        .shard_size = hybrid ? 2 : 4,
                        .optimizer_over_replicas = hybrid,
                        .bucket_bytes = 1,
                        .gradients = compute,
                        .reduced = GENERATE(DType::kF32, DType::kBF16),
                        .recompute = GENERATE(Recompute::kNone, Recompute::kSelective)};
  const StepProgram program =
      build_train_step(architecture, make_layout(architecture, 4), find_strategy(strategy), shape)
          .program;
  CHECK_NOTHROW(run_idle(program, 1));
  int edges = 0;
  for (size_t id = 0; id < program.ops.size(); ++id) {
    for (size_t edge = 0; edge < program.ops[id].after.size(); ++edge) {
      StepProgram planted = program;
      planted.ops[id].after.erase(planted.ops[id].after.begin() + std::ptrdiff_t(edge));
      CAPTURE(describe(program.ops[id]));
      CHECK_THROWS_WITH(run_idle(planted, 1), Catch::Contains("race"));
      ++edges;
    }
  }
  CHECK(edges >= 4);
}

}  // namespace
}  // namespace gxp
