// Every strategy trains as DDP does, to the bit; and sends what its formula says.
#include "lib/train/model/generation.h"
#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

std::vector<std::string> sharding_strategies() {
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies()) {
    if (strategy.shard_optimizer) names.emplace_back(strategy.name);
  }
  return names;
}

TEST_CASE("every strategy has the losses, norms, gradients and weights of DDP, bit for bit",
          "[train]") {
  const auto [folder, world_size, strategy, precision] = GENERATE(from_range(
      combinations(golden_runs(), std::vector<int>{2, 4}, sharding_strategies(),
                   std::vector<std::string>{"train.precision=fp32", "train.precision=bf16",
                                            "train.precision=fp16"})));
  CAPTURE(folder, world_size, strategy, precision);
  const Trained& ddp = trained_once(folder, world_size, {precision}, world_size);
  const auto ranks = train_on_ranks(
      golden_config(folder, world_size, {precision, "parallel.strategy=" + strategy}), world_size);
  for (const Trained& rank : ranks) {
    check_same(rank, ddp);
    CHECK(same_bits(rank.first_gradients, ddp.first_gradients));
  }
}

TEST_CASE("groups with replicas have the bits of DDP", "[train][table]") {
  const std::string strategy =
      GENERATE("zero1", "zero2", "hybrid_shard", "hybrid_shard_zero2", "zero3_hpz");
  const std::string over = GENERATE("false", "true");
  struct Ranks {
    int world_size, shard_size;
  };
  const auto ranks = GENERATE(values<Ranks>({{4, 2}, {4, 1}, {4, 4}, {6, 2}}));
  CAPTURE(strategy, over, ranks.world_size, ranks.shard_size);
  const Settings shape = {"train.micro_batch=1", "train.grad_accum=2", "train.steps=4"};
  const Settings sets =
      Settings{"parallel.strategy=" + strategy, "parallel.optimizer_over_replicas=" + over,
               fmt::format("parallel.shard_size={}", ranks.shard_size)} +
      shape;
  const Trained& ddp = trained_once("gpt2-accum", ranks.world_size, shape, 1);
  for (const Trained& rank : train_on_ranks(golden_config("gpt2-accum", 1, sets), ranks.world_size))
    check_same(rank, ddp);
}

TEST_CASE("any-world-size: 1, 2, 4 and 8 ranks train to the same bits", "[train][table]") {
  const std::string folder = GENERATE(from_range(tiny_runs()));
  const auto sets = [](int world_size, const std::string& strategy) {
    return Settings{"train.deterministic=any-world-size",
                    "train.micro_batch=1",
                    "train.steps=5",
                    fmt::format("train.grad_accum={}", 8 / world_size),
                    "parallel.strategy=" + strategy,
                    fmt::format("parallel.shard_size={}", strategy == "hybrid_shard" ? 2 : 0)};
  };
  const int world_size = GENERATE(2, 4, 8);
  const std::string strategy = GENERATE("ddp", "zero1", "zero3", "hybrid_shard");
  CAPTURE(folder, world_size, strategy);
  const Trained& one = trained_once(folder, 1, sets(1, "ddp"), 1);
  const RunConfig config = golden_config(folder, 1, sets(world_size, strategy));
  const Trained many = train_on_ranks(config, world_size)[0];
  for (size_t s = 0; s < one.steps.size(); ++s) {
    CHECK(many.steps[s].loss == one.steps[s].loss);
    CHECK(many.steps[s].grad_norm == one.steps[s].grad_norm);
  }
  CHECK(same_bits(many.weights, one.weights));
}

TEST_CASE("any-world-size needs a power of two of micro-batches, added once a step", "[train]") {
  const auto train = [&](const Settings& sets) {
    train_on_ranks(
        golden_config("gpt2-tiny", 1, Settings{"train.deterministic=any-world-size"} + sets), 2);
  };
  CHECK_THROWS_WITH(train({"train.grad_accum=3"}), Catch::Contains("2 ranks x 3 micro-batches"));
  CHECK_THROWS_WITH(train({"train.grad_accum=2", "parallel.hold_gradients=false"}),
                    Catch::Contains("parallel.hold_gradients = true"));
}

TEST_CASE("a shard size that does not divide the ranks, or of what is not sharded, is refused",
          "[train]") {
  CHECK_THROWS_WITH(
      train_on_ranks(golden_config("gpt2-tiny", 1,
                                   {"parallel.strategy=hybrid_shard", "parallel.shard_size=2"}),
                     3),
      Catch::Contains("choose a divisor of 3"));
  CHECK_THROWS_WITH(train_on_ranks(golden_config("gpt2-tiny", 1, {"parallel.shard_size=2"}), 2),
                    Catch::Contains("ddp shards nothing"));
}

TEST_CASE("gradients that are reduced after every micro-batch train to nearly the same weights",
          "[train]") {
  const std::string strategy = GENERATE("zero2", "zero3", "shard_grad_op");
  const std::string shard_size = GENERATE("0", "1");  // 1: there are replicas alone
  const std::vector<std::string> sets = {"parallel.strategy=" + strategy,
                                         "parallel.shard_size=" + shard_size,
                                         "parallel.hold_gradients=false"};
  const Trained& ddp = trained_once("gpt2-accum", 2, {}, 2);
  const Trained freed = train_on_ranks(golden_config("gpt2-accum", 2, sets), 2)[0];
  for (size_t s = 0; s < ddp.steps.size(); ++s)
    CHECK(freed.steps[s].loss == Approx(ddp.steps[s].loss).epsilon(1e-6));
}

// Bytes of all parameters, padding included, that a rank does not hold itself.
double others_bytes(int world_size) {
  const RunConfig config = golden_config("gpt2-tiny", 1);
  const ParameterLayout layout = make_layout(make_architecture(config.model), world_size);
  return double(layout.count * sizeof(float)) * (world_size - 1) / world_size;
}

TEST_CASE("a rank sends two or three times what it does not hold, and a few words",
          "[train][table]") {
  const std::string strategy = GENERATE(from_range(sharding_strategies()));
  const int world_size =
      GENERATE(2, 4);  // with others, small messages travel further in return for speed
  CAPTURE(strategy, world_size);
  const std::vector<std::string> sets = {"parallel.strategy=" + strategy, "train.micro_batch=1",
                                         "train.steps=2"};
  const auto ranks = train_on_ranks(golden_config("gpt2-tiny", 1, sets), world_size);
  const int times = find_strategy(strategy).reshard_after_forward ? 3 : 2;
  double sent = 0;
  for (const Trained& rank : ranks) sent += double(rank.steps[1].wire_bytes);
  CHECK(sent / world_size <= times * others_bytes(world_size) + 256.0 * world_size);
}

TEST_CASE("sharded memory falls with the number of ranks", "[train]") {
  struct Row {
    const char* strategy;
    double parameters, gradients, optimizer;  // shares of a rank, in 1 / world_size
  };
  const auto row = GENERATE(values<Row>(
      {{"zero1", 4, 4, 1}, {"shard_grad_op", 1, 1, 1}, {"zero2", 4, 1, 1}, {"zero3", 1, 1, 1}}));
  const RunConfig config = golden_config(
      "gpt2-tiny", 4, {"parallel.strategy=" + std::string(row.strategy), "train.steps=1"});
  const Architecture architecture = make_architecture(config.model);
  const ParameterLayout layout = make_layout(architecture, 4);
  const StepShape shape{.rows = 1, .positions = 32, .world_size = 4};
  const StepProgram program =
      build_train_step(architecture, layout, find_strategy(row.strategy), shape).program;
  const auto share = [&](BufferId id) {
    return double(program.buffers[size_t(id)].bytes) / double(layout.count);
  };
  CHECK(share(program.parameters) == row.parameters);
  CHECK(share(program.gradients) == row.gradients);
  for (const BufferId id : program.optimizer_states) CHECK(share(id) == row.optimizer);
}

TEST_CASE("a checkpoint of one strategy is resumed by another, to the same bits", "[train]") {
  const std::string first = GENERATE("ddp", "zero1", "zero3", "hybrid_shard");
  const std::string second = GENERATE("ddp", "zero2", "zero3", "hybrid_shard");
  CAPTURE(first, second);
  const TemporaryDirectory directory;
  const auto run_until = [&](const std::string& strategy, int until) {
    const RunConfig config =
        golden_config("gpt2-accum", 2,
                      {"checkpoint.dir=" + directory.path(), "parallel.strategy=" + strategy,
                       fmt::format("parallel.shard_size={}", int(find_strategy(strategy).hybrid))});
    return run_ranks(2, [&](Communicator& c) { return train_part(config, c, until); })[0].weights;
  };
  const Trained& whole = trained_once("gpt2-accum", 2, {}, 2);
  run_until(first, 5);
  CHECK(same_bits(run_until(second, 12), whole.weights));
}

TEST_CASE("sharded ranks validate and generate as DDP does", "[train]") {
  const auto outcome = [](const std::string& strategy) {
    const size_t cut = strategy.find(' ');
    std::vector<std::string> sets = {"data.valid=" + golden_path("gpt2-tiny", "tokens.i32"),
                                     "train.valid_batches=2",
                                     "parallel.strategy=" + strategy.substr(0, cut)};
    if (cut != std::string::npos) sets.push_back(strategy.substr(cut + 1));
    const RunConfig config = golden_config("gpt2-tiny", 2, sets);
    return run_ranks(2, [&](Communicator& c) {
      Backend backend = make_backend(config.train, 2);
      Trainer trainer(config, c, backend);
      trainer.initialise_weights();
      for (int step = 0; step < 2; ++step) trainer.step(false);
      const double loss = trainer.validate();
      if (c.rank() > 0 && !trainer.is_sharded()) return std::pair(loss, Tokens());
      return std::pair(loss, generate(trainer.model(), {.prompt = {1, 2, 3}, .count = 20}));
    });
  };
  const auto ddp = outcome("ddp");
  const auto sharded = outcome(
      GENERATE("zero1", "zero2", "zero3", "shard_grad_op", "hybrid_shard parallel.shard_size=1"));
  CHECK(sharded[0] == ddp[0]);
  CHECK(sharded[1].first == ddp[0].first);
}

}  // namespace
}  // namespace gxp
