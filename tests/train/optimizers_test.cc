// Every optimizer with every strategy: bits, memory, checkpoints.
#include "lib/arch/optimizers.h"
#include "lib/ckpt/format.h"
#include "lib/optim/lr_schedule.h"
#include "lib/tools/planner/model_states.h"
#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

// The table's, without AdamW, which the other tests train with, but with its moments of fewer bits.
std::vector<std::string> other_optimizers() {
  std::vector<std::string> names = {"adamw, bf16", "adamw, int8"};
  for (const std::string_view name : optimizer_names())
    if (name != "adamw") names.emplace_back(name);
  return names;
}

RunConfig config_with(const std::string& optimizer, int world_size, const Settings& others = {}) {
  const size_t comma = optimizer.find(", ");
  Settings sets = {"optim.name=" + optimizer.substr(0, comma)};
  if (comma != std::string::npos)
    sets.push_back("optim.state_dtype=" + optimizer.substr(comma + 2));
  if (optimizer == "sgd") sets.insert(sets.end(), {"optim.momentum=0.9", "optim.lr=0.1"});
  if (optimizer == "muon") sets.emplace_back("optim.lr=0.02");
  return golden_config("gpt2-tiny", world_size, sets + others);
}

TEST_CASE("every optimizer trains to the bits of DDP under every strategy, and learns",
          "[train][table]") {
  const std::string optimizer = GENERATE(from_range(other_optimizers()));
  const int world_size = GENERATE(2, 4);
  const auto run = [&](const std::string& strategy) {
    const Settings sets = {"parallel.strategy=" + strategy, "train.steps=6"};
    return train_on_ranks(config_with(optimizer, world_size, sets), world_size)[1];
  };
  const Trained ddp = run("ddp");
  CAPTURE(optimizer);
  CHECK(ddp.steps.back().loss < ddp.steps.front().loss);
  for (const std::string strategy : {"no_shard", "zero1", "zero2", "zero3", "shard_grad_op"}) {
    CAPTURE(world_size, strategy);
    CHECK(same_bits(run(strategy).weights, ddp.weights));
  }
}

TEST_CASE("every optimizer trains to the bits of DDP with shard groups and replicas",
          "[train][table]") {
  const std::string optimizer = GENERATE(std::string("adamw"), from_range(other_optimizers()));
  const std::string over_replicas = GENERATE("true", "false");
  CAPTURE(optimizer, over_replicas);
  const auto run = [&](Settings sets) {
    sets.emplace_back("train.steps=4");
    return train_on_ranks(config_with(optimizer, 4, sets), 4)[3].weights;
  };
  CHECK(same_bits(run({"parallel.strategy=hybrid_shard", "parallel.shard_size=2",
                       "parallel.optimizer_over_replicas=" + over_replicas}),
                  run({})));
}

TEST_CASE("an optimizer's state is resumed by another strategy, to the same bits", "[train]") {
  const std::string optimizer = GENERATE(from_range(other_optimizers()));
  const std::string first = GENERATE("ddp", "zero3");
  const std::string second = first == "ddp" ? "zero2" : "ddp";
  CAPTURE(optimizer, first, second);
  const TemporaryDirectory directory;
  const auto run_until = [&](const std::string& strategy, int until) {
    const RunConfig config = config_with(
        optimizer, 2, {"checkpoint.dir=" + directory.path(), "parallel.strategy=" + strategy});
    return run_ranks(2, [&](Communicator& c) { return train_part(config, c, until); })[0].weights;
  };
  run_until(first, 3);
  const Trained whole = train_on_ranks(config_with(optimizer, 2, {"train.steps=6"}), 2)[0];
  CHECK(same_bits(run_until(second, 6), whole.weights));
}

TEST_CASE("an optimizer goes on at another world size with nearly the same loss", "[train]") {
  const std::string optimizer = GENERATE(from_range(other_optimizers()));
  const TemporaryDirectory directory;
  const auto run_until = [&](int world_size, int until) {
    const RunConfig config = config_with(
        optimizer, world_size, {"checkpoint.dir=" + directory.path(), "parallel.strategy=zero3"});
    return run_ranks(world_size, [&](Communicator& c) { return train_part(config, c, until); })[0];
  };
  const Trained whole = train_on_ranks(config_with(optimizer, 2, {"train.steps=6"}), 2)[0];
  run_until(2, 3);
  const Trained resumed = run_until(4, 6);
  for (size_t s = 0; s < 3; ++s)
    CHECK(resumed.steps[s].loss == Approx(whole.steps[s + 3].loss).epsilon(1e-5));
}

TEST_CASE("weight decay takes vectors only where it is told to", "[train]") {
  const auto after_a_step = [](const char* vectors) {
    const std::string set = std::string("optim.decay_vectors=") + vectors;
    const RunConfig config = golden_config(
        "gpt2-accum", 1, {set, "train.steps=1", "optim.lr=0.1", "optim.weight_decay=0.5"});
    return train_on_ranks(config, 1)[0].weights;
  };
  const std::vector<Values> matrices = after_a_step("false"), all = after_a_step("true");
  const RunConfig config = golden_config("gpt2-accum", 1);
  const NamedTensors init = read_weights(config.model.init);
  const double decay = learning_rate(config.lr_schedule, 0.1, 1, 1) * 0.5;
  size_t i = 0;
  for (const UnitSpec& unit : make_architecture(config.model).units) {
    for (const TensorSpec& spec : unit.tensors) {
      CAPTURE(spec.name);
      Values first(spec.count());
      find_tensor(init, spec.name)->read(0, memory_of(first));
      const double factor = spec.decays() ? 0 : decay;
      for (size_t k = 0; k < first.size(); ++k)
        REQUIRE(all[i][k] == Approx(matrices[i][k] - factor * first[k]).margin(1e-6));
      ++i;
    }
  }
}

// Saves after a step with one optimizer and continues with the other.
void resume_across(const Settings& saved, const Settings& resumed, const KeyValues& saved_settings,
                   const KeyValues& settings) {
  const TemporaryDirectory directory;
  const auto with = [&](Settings sets) {
    sets.push_back("checkpoint.dir=" + directory.path());
    return golden_config("gpt2-tiny", 1, sets);
  };
  run_ranks(1, [&](Communicator& c) {
    Backend backend = make_backend(with({}).train, 1);
    Trainer trainer(with(saved), c, backend);
    trainer.initialise_weights();
    save_state(trainer, c, with(saved), saved_settings);
    Trainer next(with(resumed), c, backend);
    resume_state(next, c, with(resumed), settings);
    return 0;
  });
}

TEST_CASE("a checkpoint of another optimizer is refused, with what each keeps", "[train]") {
  const KeyValues sgd = {{"optim.name", "\"sgd\""}};
  const KeyValues lion = {{"optim.name", "\"lion\""}};
  CHECK_THROWS_WITH(
      resume_across({"optim.name=sgd", "optim.momentum=0.9"}, {"optim.name=lion"}, sgd, lion),
      Catch::Contains("optim.name is \"sgd\" there and \"lion\" in this run"));
  CHECK_THROWS_WITH(
      resume_across({"optim.name=sgd"}, {"optim.name=sgd", "optim.momentum=0.9"}, sgd, sgd),
      Catch::Contains("it holds no optimizer state, but optim.name = \"sgd\" keeps momentum"));
  CHECK_THROWS_WITH(
      resume_across({"optim.name=sgd", "optim.momentum=0.9"}, {"optim.name=sgd"}, sgd, sgd),
      Catch::Contains("it holds momentum, but"));
}

TEST_CASE("any-world-size: moments of fewer bits are the same on 1, 2 and 4 ranks", "[train]") {
  const std::string optimizer = GENERATE("adamw, bf16", "adamw, int8");
  const auto run = [&](int world_size, const std::string& strategy) {
    const RunConfig config = config_with(
        optimizer, 1,
        {"train.deterministic=any-world-size", "train.micro_batch=1", "train.steps=5",
         fmt::format("train.grad_accum={}", 4 / world_size), "parallel.strategy=" + strategy});
    return train_on_ranks(config, world_size)[0].weights;
  };
  const auto one = run(1, "ddp");
  CHECK(same_bits(run(2, "zero1"), one));
  CHECK(same_bits(run(4, "zero3"), one));
}

TEST_CASE("moments of f32 go on as bf16, and back", "[train]") {
  const std::string first = GENERATE("fp32", "bf16");
  const TemporaryDirectory directory;
  const auto run_until = [&](const std::string& state_dtype, int until) {
    const RunConfig config =
        config_with("adamw, " + state_dtype, 2,
                    {"checkpoint.dir=" + directory.path(), "parallel.strategy=zero3"});
    return run_ranks(2, [&](Communicator& c) { return train_part(config, c, until); })[0];
  };
  run_until(first, 3);
  const Trained resumed = run_until(first == "fp32" ? "bf16" : "fp32", 6);
  const Trained whole = train_on_ranks(config_with("adamw", 2, {"train.steps=6"}), 2)[0];
  for (size_t s = 0; s < 3; ++s)
    CHECK(resumed.steps[s].loss == Approx(whole.steps[s + 3].loss).epsilon(1e-3));
}

TEST_CASE("moments of 8-bit codes are not resumed as numbers, nor numbers as codes", "[train]") {
  const KeyValues adamw = {{"optim.name", "\"adamw\""}};
  CHECK_THROWS_WITH(
      resume_across({"optim.state_dtype=int8"}, {}, adamw, adamw),
      Catch::Contains("its moments are 8-bit codes, but optim.state_dtype is \"fp32\""));
  CHECK_THROWS_WITH(
      resume_across({"optim.state_dtype=bf16"}, {"optim.state_dtype=int8"}, adamw, adamw),
      Catch::Contains("its moments are numbers, not 8-bit codes, but"));
}

TEST_CASE("training allocates the optimizer's bytes that memcalc says", "[train]") {
  struct Row {
    const char* optimizer;
    double momentum;
    const char* in_memcalc;
    const char* state_dtype = "fp32";
  };
  const auto row = GENERATE(values<Row>({{"adamw", 0, "adamw"},
                                         {"adamw", 0, "adamw-bf16", "bf16"},
                                         {"adamw", 0, "adamw-int8", "int8"},
                                         {"adam", 0, "adam"},
                                         {"sgd", 0, "sgd"},
                                         {"sgd", 0.9, "momentum"},
                                         {"lion", 0, "lion"}}));
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(row.in_memcalc, stage);
  // Sizes that need no padding.
  const Architecture architecture =
      make_architecture({.vocab_size = 256, .context = 64, .hidden = 1024, .layers = 2});
  OptimConfig optim;
  optim.name = row.optimizer;
  optim.momentum = row.momentum;
  optim.state_dtype = row.state_dtype;
  const ParameterLayout layout =
      make_layout(architecture, 4, {}, block_of(make_optimizer_spec(optim)));
  REQUIRE(layout.count == architecture.parameter_count());
  const StepShape shape{.world_size = 4, .optimizer = make_optimizer_spec(optim)};
  const char* strategy = std::array{"ddp", "zero1", "zero2", "zero3"}[size_t(stage)];
  const StepProgram program =
      build_train_step(architecture, layout, find_strategy(strategy), shape).program;
  uint64_t bytes = 0;
  for (const BufferSpec& buffer : program.buffers)
    bytes += buffer.kind == MemoryKind::kOptimizer ? buffer.bytes : 0;
  const Training training{layout.count, find_precision("fp32"),
                          find_optimizer_state(row.in_memcalc)};
  CHECK(bytes == model_states(training, {.stage = stage, .gpus = 4}).optimizer());
}

}  // namespace
}  // namespace gxp
