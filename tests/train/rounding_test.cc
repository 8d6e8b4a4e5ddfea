// Stochastic rounding of master weights: the same bits wherever and whenever it is done.
#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

RunConfig config_with(const Settings& more) {
  return golden_config(
      "gpt2-tiny", 2,
      Settings{"train.precision=bf16", "train.rounding=stochastic", "train.steps=6"} + more);
}

TEST_CASE("stochastic rounding has the same bits under every strategy, wrap and offload",
          "[train][table]") {
  const Settings how = GENERATE(values<Settings>(
      {{"parallel.strategy=zero1"},
       {"parallel.strategy=zero3"},
       {"parallel.strategy=hybrid_shard", "parallel.shard_size=1"},
       {"offload.optimizer=memory", "offload.step_tile=2048"},
       {"offload.optimizer=memory", "offload.ratio=0.5", "parallel.strategy=zero2"},
       {"offload.optimizer=memory", "offload.parameters=memory", "parallel.strategy=zero3"}}));
  CAPTURE(how);
  check_same(train_on_ranks(config_with(how), 2)[0], train_on_ranks(config_with({}), 2)[0]);
}

TEST_CASE("stochastic rounding goes on after a resume, and a validation does not change it",
          "[train]") {
  const Settings offload = GENERATE(values<Settings>({{}, {"offload.optimizer=memory"}}));
  CAPTURE(offload);
  const TemporaryDirectory directory;
  const RunConfig config =
      config_with(Settings{"checkpoint.dir=" + directory.path(), "train.valid_batches=1",
                           "data.valid=" + golden_path("gpt2-tiny", "tokens.i32")} +
                  offload);
  const Trained whole = train_on_ranks(config, 2)[0];
  run_ranks(2, [&](Communicator& c) { return train_part(config, c, 3); });
  const auto resumed = run_ranks(2, [&](Communicator& c) {
    Backend backend = make_backend(config.train, 2);
    Trainer trainer(config, c, backend);
    resume_state(trainer, c, config, {});
    while (trainer.steps_done() < 6) {
      trainer.validate();
      trainer.step(false);
    }
    return weights_of(trainer, c);
  })[0];
  CHECK(same_bits(resumed, whole.weights));
}

TEST_CASE("stochastic rounding follows the seed, and differs from rounding to nearest", "[train]") {
  const auto losses = [](const Settings& sets) {
    std::vector<double> all;
    const Trained trained = train_on_ranks(config_with(sets), 2)[0];
    for (const StepResult& step : trained.steps) all.push_back(step.loss);
    return all;
  };
  const std::vector<double> one = losses({});
  CHECK(one == losses({}));
  CHECK(one != losses({"train.seed=2"}));
  CHECK(one != losses({"train.rounding=nearest"}));
}

}  // namespace
}  // namespace gxp
