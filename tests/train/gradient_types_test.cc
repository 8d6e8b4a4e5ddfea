// Gradients that are kept and reduced in types of their own.
#include <algorithm>
#include <cmath>

#include "lib/program/replay.h"
#include "lib/program/run_plan.h"
#include "lib/tools/planner/model_states.h"
#include "tests/catch.h"
#include "tests/kernels/halves.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

struct Types {
  const char* precision;
  const char* kept;
  const char* reduced;
};

Settings settings_of(const Types& types) {
  return {fmt::format("train.precision={}", types.precision),
          fmt::format("train.grad_accum_dtype={}", types.kept),
          fmt::format("parallel.reduce_dtype={}", types.reduced)};
}

constexpr Types kBf16 = {"bf16", "bf16", "bf16"};
const std::vector<Types> kTypes = {
    {"fp32", "fp32", "bf16"}, {"fp32", "bf16", "fp32"}, {"bf16", "bf16", "fp32"}, kBf16,
    {"fp16", "fp16", "bf16"}, {"fp16", "bf16", "fp16"}, {"fp16", "fp16", "fp16"}};

void check_all_same(const std::vector<Trained>& ranks, const Trained& expected) {
  for (const Trained& rank : ranks) {
    check_same(rank, expected);
    CHECK(same_bits(rank.first_gradients, expected.first_gradients));
  }
}

TEST_CASE("with any types of gradients every strategy has the bits of DDP", "[train][table]") {
  const Types types = GENERATE(from_range(kTypes));
  const std::string strategy = GENERATE("zero1", "zero2", "zero3", "hybrid_shard");
  const std::string accum = GENERATE("1", "3");
  CAPTURE(types.precision, types.kept, types.reduced, strategy, accum);
  const auto train = [&](const Settings& more) {
    const Settings sets =
        settings_of(types) +
        Settings{"train.micro_batch=1", "train.grad_accum=" + accum, "train.steps=3",
                 "fp16.initial_scale_power=8", "parallel.bucket_bytes=20000"} +
        more;
    return train_on_ranks(golden_config("gpt2-accum", 1, sets), 4);
  };
  const int shard_size = strategy == "hybrid_shard" ? 2 : 0;
  check_all_same(
      train({"parallel.strategy=" + strategy, fmt::format("parallel.shard_size={}", shard_size)}),
      train({})[0]);
}

// The f32 gradients of micro-batches of one row, the first `count` in the data's order, of a model
// that does not move.
std::vector<std::vector<Values>> gradients_of_rows(int count, const std::string& precision) {
  const RunConfig config = golden_config(
      "llama-tiny", 1,
      {"train.precision=" + precision, "fp16.initial_scale_power=8", "train.micro_batch=1",
       "train.grad_accum=1", "optim.lr=1e-30", "lr_schedule.min_lr=0", "optim.weight_decay=0"});
  return run_ranks(1, [&](Communicator& c) {
    Backend backend = make_backend(config.train, 1);
    Trainer trainer(config, c, backend);
    trainer.initialise_weights();
    std::vector<std::vector<Values>> gradients;
    for (int row = 0; row < count; ++row) {
      trainer.step(false);
      gradients.push_back(gradients_of(trainer, c));
    }
    return gradients;
  })[0];
}

TEST_CASE("a message is rounded once, and the sum once more", "[train][table]") {
  const Types types = GENERATE(from_range(kTypes));
  const std::string strategy = GENERATE("ddp", "zero2", "zero3");
  CAPTURE(types.precision, types.kept, types.reduced, strategy);
  if (std::string(types.kept) == "fp32") return;  // kernels add to f32 in orders of their own
  const auto rows = gradients_of_rows(4, types.precision);
  const Settings sets =
      settings_of(types) + Settings{"train.micro_batch=1", "train.grad_accum=2", "train.steps=1",
                                    "fp16.initial_scale_power=10", "parallel.strategy=" + strategy};
  const auto found = train_on_ranks(golden_config("llama-tiny", 1, sets), 2)[0].first_gradients;
  const DType kept = dtype_of(Choice<NumberType>(types.kept));
  const DType reduced = dtype_of(Choice<NumberType>(types.reduced));
  const auto sum = [](const Values& a, const Values& b) {
    Values sums(a.size());
    for (size_t i = 0; i < a.size(); ++i) sums[i] = a[i] + b[i];
    return sums;
  };
  for (size_t tensor = 0; tensor < found.size(); ++tensor) {
    // A step of four rows divides by as many tokens; in fp16 its scale is four times as large.
    const float share = std::string(types.precision) == "fp16" ? 1.0f : 0.25f;
    const auto of = [&](int micro, int rank) {
      Values row = rows[size_t(2 * micro + rank)][tensor];
      for (float& value : row) value *= share;
      return row;
    };
    const auto message = [&](int rank) {
      return rounded(sum(rounded(of(0, rank), kept), of(1, rank)), reduced);
    };
    const Values expected = rounded(rounded(sum(message(0), message(1)), reduced), kept);
    CHECK(found[tensor] == expected);
  }
}

TEST_CASE("any-world-size: gradients of one half type are the same on 1, 2 and 4 ranks",
          "[train][table]") {
  const Types types = GENERATE(values<Types>({kBf16, {"fp16", "fp16", "fp16"}}));
  const auto train = [&](int world_size, const std::string& strategy) {
    const Settings sets =
        settings_of(types) + Settings{"train.deterministic=any-world-size",
                                      "train.micro_batch=1",
                                      "train.steps=3",
                                      "fp16.initial_scale_power=8",
                                      "parallel.strategy=" + strategy,
                                      fmt::format("train.grad_accum={}", 4 / world_size)};
    return train_on_ranks(golden_config("gpt2-tiny", 1, sets), world_size);
  };
  const int world_size = GENERATE(2, 4);
  const std::string strategy = GENERATE("ddp", "zero1", "zero3");
  CAPTURE(types.precision, world_size, strategy);
  check_all_same(train(world_size, strategy), train(1, "ddp")[0]);
}

TEST_CASE("halves of gradients go through every optimizer, offload and recomputation", "[train]") {
  const Settings how =
      GENERATE(values<Settings>({{"optim.name=adam"},
                                 {"optim.name=sgd", "optim.momentum=0.9"},
                                 {"optim.name=lion"},
                                 {"optim.name=muon"},
                                 {"optim.name=adafactor"},
                                 {"train.recompute=full"},
                                 {"parallel.wrap=none"},
                                 {"offload.optimizer=memory", "offload.step_tile=2048"}}));
  CAPTURE(how);
  const auto train = [&](const Settings& more) {
    const Settings sets = settings_of(kBf16) + Settings{"train.steps=3"} + how + more;
    return train_on_ranks(golden_config("gpt2-accum", 2, sets), 2);
  };
  check_all_same(train({"parallel.strategy=zero3"}), train({})[0]);
  check_all_same(train({"parallel.strategy=zero3", "parallel.hold_gradients=false"}),
                 train({"parallel.strategy=zero2", "parallel.hold_gradients=false"})[0]);
}

TEST_CASE("with halves of gradients a run's model states are the paper's", "[train]") {
  const std::string strategy = GENERATE("ddp", "zero1", "zero2", "zero3");
  const int world_size = GENERATE(1, 2, 4, 8);
  CAPTURE(strategy, world_size);
  Settings sets = settings_of(kBf16);
  sets.push_back("parallel.strategy=" + strategy);
  const RunPlan plan = plan_run(golden_config("gpt2-tiny", 1, sets), world_size);
  const KindBytes held = replay_memory(plan.step.program).persistent;
  const int stage = strategy == "ddp" ? 0 : strategy.back() - '0';
  const ModelStates states =
      model_states({plan.layout.count, find_precision("bf16"), find_optimizer_state("adamw")},
                   {.stage = stage, .gpus = world_size});
  CHECK(held[size_t(MemoryKind::kParameters)] == states.parameters);
  CHECK(held[size_t(MemoryKind::kGradients)] == states.gradients);
  CHECK(held[size_t(MemoryKind::kOptimizer)] == states.optimizer());
}

}  // namespace
}  // namespace gxp
