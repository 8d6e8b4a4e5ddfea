// What half precision adds to training: master weights, their checkpoints, and the loss scale.
#include <cmath>

#include "lib/program/run_plan.h"
#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

// Calls use(trainer, communicator) on each of `world_size` ranks and returns what rank 0's did.
template <class Use>
auto on_ranks(int world_size, const RunConfig& config, const Use& use) {
  return run_ranks(world_size, [&](Communicator& c) {
    Backend backend = make_backend(config.train, world_size);
    Trainer trainer(config, c, backend);
    return use(trainer, c);
  })[0];
}

TEST_CASE("a checkpoint of any precision holds the f32 weights, for a run of any other",
          "[train]") {
  const std::string first = GENERATE("fp32", "bf16", "fp16");
  const std::string second = GENERATE("fp32", "bf16", "fp16");
  const std::string strategy = GENERATE("ddp", "zero1", "zero3");
  CAPTURE(first, second, strategy);
  const TemporaryDirectory directory;
  const auto config = [&](const std::string& precision) {
    return golden_config("gpt2-tiny", 2,
                         {"train.precision=" + precision, "parallel.strategy=" + strategy,
                          "checkpoint.dir=" + directory.path()});
  };
  const auto saved = on_ranks(2, config(first), [&](Trainer& trainer, Communicator& c) {
    trainer.initialise_weights();
    for (int step = 0; step < 3; ++step) trainer.step(false);
    save_state(trainer, c, config(first), {});
    return weights_of(trainer, c);
  });
  const auto resumed = on_ranks(2, config(second), [&](Trainer& trainer, Communicator& c) {
    resume_state(trainer, c, config(second), {});
    auto weights = weights_of(trainer, c);
    return std::pair(std::move(weights), trainer.step(false).loss);
  });
  CHECK(resumed.first == saved);
  CHECK(std::isfinite(resumed.second));
}

TEST_CASE("a step whose gradients overflow changes nothing but the scale", "[train]") {
  const std::string strategy = GENERATE("ddp", "zero1", "zero3");
  CAPTURE(strategy);
  const RunConfig config = golden_config("gpt2-tiny", 2,
                                         {"train.precision=fp16", "parallel.strategy=" + strategy,
                                          "fp16.initial_scale_power=32", "fp16.hysteresis=1"});
  struct Seen {
    std::vector<double> scales;  // of skipped steps
    bool kept_weights = true;    // in them
    bool moved = false;          // in the one after them
    int64_t skipped = 0;
    double lr = 0;
  };
  const Seen seen = on_ranks(2, config, [](Trainer& trainer, Communicator& c) {
    trainer.initialise_weights();
    const auto before = weights_of(trainer, c);
    Seen all;
    StepResult result = trainer.step(false);
    for (; result.skipped; result = trainer.step(false)) {
      all.scales.push_back(result.loss_scale);
      all.kept_weights = all.kept_weights && weights_of(trainer, c) == before;
    }
    all.moved = weights_of(trainer, c) != before;
    all.skipped = trainer.clipping().steps_skipped();
    all.lr = result.lr;
    return all;
  });
  REQUIRE(!seen.scales.empty());
  for (size_t i = 0; i < seen.scales.size(); ++i)
    CHECK(seen.scales[i] == std::ldexp(1.0, 32 - int(i)));
  CHECK(seen.kept_weights);
  CHECK(seen.skipped == int64_t(seen.scales.size()));
  CHECK(seen.lr > 0);
  CHECK(seen.moved);
}

TEST_CASE("a step whose loss or norm is an outlier changes nothing, also in a resumed run",
          "[train][table]") {
  const std::string setting = GENERATE("train.loss_outlier=1", "train.norm_outlier=1");
  const TemporaryDirectory directory;
  const RunConfig config = golden_config(
      "gpt2-tiny", 2,
      {setting, "train.bad_step=skip", "optim.lr=1e-6", "data.order=shuffled",
       "lr_schedule.name=constant", "lr_schedule.min_lr=0", "checkpoint.dir=" + directory.path()});
  const auto run_until = [&](int until, bool resume) {
    return on_ranks(2, config, [&](Trainer& trainer, Communicator& c) {
      if (!resume || !resume_state(trainer, c, config, {})) trainer.initialise_weights();
      bool kept = true;
      auto before = weights_of(trainer, c);
      while (trainer.steps_done() < until) {
        const bool skipped = trainer.step(false).skipped;
        auto after = weights_of(trainer, c);
        kept = kept && (after == before) == skipped;
        before = std::move(after);
      }
      if (until < 180) save_state(trainer, c, config, {});
      KeyValues state = trainer.clipping().saved_state();
      state.emplace_back("weights changed only in steps that counted", kept ? "yes" : "no");
      return std::pair(weights_of(trainer, c), std::move(state));
    });
  };
  run_until(150, false);
  const auto whole = run_until(180, false);
  CHECK(find_value(whole.second, "skipped_steps").value_or("0") != "0");
  CHECK(whole.second.back().second == "yes");
  CHECK(run_until(180, true) == whole);
}

TEST_CASE("skipped steps do not move the learning rate's schedule", "[train]") {
  const auto rates = [](const std::string& power) {
    const RunConfig config = golden_config(
        "gpt2-tiny", 1,
        {"train.precision=fp16", "fp16.initial_scale_power=" + power, "fp16.hysteresis=1"});
    return on_ranks(1, config, [](Trainer& trainer, Communicator&) {
      trainer.initialise_weights();
      std::vector<double> rates;
      while (rates.size() < 3) {
        const StepResult result = trainer.step(false);
        if (!result.skipped) rates.push_back(result.lr);
      }
      return rates;
    });
  };
  CHECK(rates("30") == rates("10"));
}

TEST_CASE("a resumed fp16 run goes on with its loss scale, to the same bits", "[train]") {
  const TemporaryDirectory directory;
  const RunConfig config =
      golden_config("gpt2-tiny", 2,
                    {"train.precision=fp16", "fp16.initial_scale_power=30", "fp16.window=3",
                     "fp16.hysteresis=1", "checkpoint.dir=" + directory.path()});
  const auto run_until = [&](int until, bool resume) {
    return on_ranks(2, config, [&](Trainer& trainer, Communicator& c) {
      if (!resume || !resume_state(trainer, c, config, {})) trainer.initialise_weights();
      while (trainer.steps_done() < until) trainer.step(false);
      if (until < 20) save_state(trainer, c, config, {});
      return std::pair(weights_of(trainer, c), trainer.clipping().saved_state());
    });
  };
  run_until(7, false);
  CHECK(run_until(20, true) == run_until(20, false));
}

TEST_CASE("at the smallest loss scale the first tensor that overflows is named", "[train]") {
  const std::string strategy = GENERATE("ddp", "zero3");
  const RunConfig config = golden_config(
      "gpt2-tiny", 2,
      {"train.precision=fp16", "parallel.strategy=" + strategy, "fp16.initial_scale_power=32",
       "fp16.min_scale=4294967296", "fp16.hysteresis=1"});
  const auto train_one = [&] {
    on_ranks(2, config, [](Trainer& trainer, Communicator&) {
      trainer.initialise_weights();
      return trainer.step(false).loss;
    });
  };
  CHECK_THROWS_WITH(train_one(),
                    Catch::Contains("smallest loss scale") && Catch::Contains("transformer."));
}

TEST_CASE("fp8 refuses widths that no GPU multiplies in 8 bits, before there is memory",
          "[train]") {
  const auto [folder, sets, message] = GENERATE(table<std::string, Settings, std::string>(
      {{"gpt2-tiny", {"model.hidden=72"}, "attn.c_attn.weight is 72 x 216"},
       {"llama-tiny", {}, "layers.0.self_attn.k_proj.weight is 24 x 48"}}));
  CAPTURE(message);
  const RunConfig config = golden_config(
      folder, 1, Settings{"train.precision=bf16", "train.matmul=fp8", "model.init=normal"} + sets);
  CHECK_THROWS_WITH(plan_run(config, 1),
                    Catch::Contains(message) && Catch::Contains("train.matmul = \"precision\""));
  CHECK_THROWS_WITH(train_on_ranks(config, 1), Catch::Contains(message));
}

TEST_CASE("the model reads half the bytes, and the optimizer keeps f32 weights", "[train]") {
  const Architecture architecture =
      make_architecture(golden_config("gpt2-tiny", 4).model, DType::kBF16);
  const ParameterLayout layout = make_layout(architecture, 4);
  const StepShape shape{.rows = 1, .positions = 32, .world_size = 4};
  const auto bytes_per_parameter = [&](const std::string& strategy, MemoryKind kind) {
    const StepProgram program =
        build_train_step(architecture, layout, find_strategy(strategy), shape).program;
    size_t bytes = 0;
    for (const BufferSpec& buffer : program.buffers)
      bytes += buffer.persistent && buffer.kind == kind ? buffer.bytes : 0;
    return double(bytes) / double(layout.count);
  };
  CHECK(bytes_per_parameter("ddp", MemoryKind::kParameters) == 2);
  CHECK(bytes_per_parameter("zero3", MemoryKind::kParameters) == 2.0 / 4);
  CHECK(bytes_per_parameter("ddp", MemoryKind::kOptimizer) == 12);
  CHECK(bytes_per_parameter("zero1", MemoryKind::kOptimizer) == 12.0 / 4);
}

}  // namespace
}  // namespace gxp
