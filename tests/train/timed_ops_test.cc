#include "lib/train/timed_ops.h"

#include "lib/train/measure_classes.h"
#include "tests/catch.h"
#include "tests/train/timed_training.h"

namespace gxp {

TEST_CASE("a timed run has the bits of a plain one, and time in every class that is predicted",
          "[train]") {
  // gpt2's GELUs have a pass of their own where a GPU has them in a product: keep = all is left out.
  const auto [folder, sets] = GENERATE(table<std::string, Settings>(
      {{"gpt2-accum", {}},
       {"gpt2-accum", {"train.recompute=full", "train.keep=norms"}},
       {"gpt2-accum", {"train.matmul=fp8", "model.init=normal"}},
       {"gpt2-accum", {"train.frozen=[\"h.*.weight\"]"}},
       {"gpt2-accum", {"optim.name=muon", "parallel.strategy=zero2"}},
       {"llama-tiny", {}},
       {"llama-tiny", {"train.recompute=selective", "train.keep=all"}}}));
  CAPTURE(folder, sets);
  const RunConfig config =
      golden_config(folder, 1, Settings{"train.precision=bf16", "train.steps=3"} + sets);
  const TimedTraining timed = train_timed(config, make_backend(config.train, 1), 3);
  const Trained plain = train_on_ranks(config, 1)[0];
  check_same(timed.trained, plain);
  CHECK(timed.measured == predicted_classes(config));
  CHECK(timed.classes_seconds > 0);
  CHECK(timed.classes_seconds < timed.step_seconds);
}

TEST_CASE("a measurement takes a run's first steps and has their time", "[train]") {
  const int world_size = GENERATE(1, 2);
  const RunConfig config = golden_config("gpt2-accum", world_size, {"parallel.strategy=zero3"});
  const auto found = run_ranks(world_size, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, world_size);
    return measure_classes(config, communicator, backend);
  });
  for (const ClassMeasurement& rank : found) {
    CHECK(rank.of_classes.sum() < rank.step_seconds);
    CHECK(rank.of_classes.classes[size_t(KernelClass::kWeightProducts)] > 0);
    CHECK(rank.tokens == 4 * 20 * 3);
    CHECK_FALSE(rank.mfu);  // of a CPU
    CHECK(rank.graphs.empty());
    CHECK((rank.of_classes.waits > 0) == (world_size > 1));
    CHECK((rank.of_classes.collectives > 0) == (world_size > 1));
  }
}

}  // namespace gxp
