// Same world size, same bits.
#include "lib/ckpt/native/checkpoint.h"
#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

TEST_CASE("every rank ends with the same bits, in every run", "[train]") {
  const int world_size = GENERATE(2, 4);
  const RunConfig config = golden_config("gpt2-accum", world_size);
  const std::vector<Trained> once = train_on_ranks(config, world_size);
  const std::vector<Trained> again = train_on_ranks(config, world_size);
  for (const Trained& rank : once) CHECK(same_bits(rank.weights, once[0].weights));
  CHECK(same_bits(once[0].weights, again[0].weights));
}

TEST_CASE("the bits do not depend on the bucket size or the threads", "[train]") {
  const std::string set = GENERATE("parallel.bucket_bytes=1", "parallel.bucket_bytes=20000",
                                   "train.threads=2", "comm.segment_bytes=512");
  CAPTURE(set);
  const std::vector<Trained> plain = train_on_ranks(golden_config("gpt2-accum", 2), 2);
  const std::vector<Trained> changed = train_on_ranks(golden_config("gpt2-accum", 2, {set}), 2);
  CHECK(same_bits(plain[0].weights, changed[0].weights));
}

TEST_CASE("an interrupted run that is resumed ends with the same bits", "[train]") {
  const int world_size = GENERATE(1, 2);
  const TemporaryDirectory directory;
  const RunConfig config =
      golden_config("gpt2-accum", world_size, {"checkpoint.dir=" + directory.path()});
  const std::vector<Trained> whole = train_on_ranks(config, world_size);
  std::vector<Trained> parts;
  for (const int until : {5, 6, 12}) {
    parts = run_ranks(world_size, [&](Communicator& c) { return train_part(config, c, until); });
  }
  CHECK(same_bits(whole[0].weights, parts[0].weights));
}

TEST_CASE("a run goes on at another world size with the same data and nearly the same loss",
          "[train]") {
  const int resumed_size = GENERATE(1, 3);
  const TemporaryDirectory directory;
  // Six rows a step, however many ranks share them.
  const auto config = [&](int world_size) {
    return golden_config("gpt2-tiny", 1,
                         {"checkpoint.dir=" + directory.path(),
                          fmt::format("train.micro_batch={}", 6 / world_size)});
  };
  const Trained whole = train_on_ranks(config(2), 2)[0];
  run_ranks(2, [&](Communicator& c) { return train_part(config(2), c, 4); });
  const auto resumed = run_ranks(
      resumed_size, [&](Communicator& c) { return train_part(config(resumed_size), c, 10); });
  REQUIRE(resumed[0].steps.size() == 6);
  for (size_t s = 0; s < 6; ++s) {
    CHECK(resumed[0].steps[s].loss == Approx(whole.steps[s + 4].loss).epsilon(1e-6));
  }
}

TEST_CASE("resuming with settings that change the model or the data order is refused", "[train]") {
  const TemporaryDirectory directory;
  const RunConfig config = golden_config("gpt2-accum", 1, {"checkpoint.dir=" + directory.path()});
  const auto resume_with = [&](const KeyValues& settings) {
    return run_ranks(1, [&](Communicator& c) {
      Backend backend = make_backend(config.train, 1);
      Trainer trainer(config, c, backend);
      trainer.initialise_weights();
      trainer.step(false);
      if (complete_steps(directory.path()).empty()) save_state(trainer, c, config, settings);
      return resume_state(trainer, c, config, settings);
    });
  };
  CHECK(resume_with({{"train.seed", "1"}, {"optim.lr", "0.1"}})[0]);
  CHECK(resume_with({{"train.seed", "1"}, {"optim.lr", "0.2"}})[0]);
  CHECK_THROWS_WITH(resume_with({{"train.seed", "2"}}),
                    Catch::Contains("train.seed is 1 there and 2 in this run"));
}

TEST_CASE("ranks that see different checkpoints do not go on", "[train]") {
  const TemporaryDirectory one, other;
  const auto config_in = [](const TemporaryDirectory& directory, int world_size) {
    return golden_config("gpt2-accum", world_size, {"checkpoint.dir=" + directory.path()});
  };
  run_ranks(1, [&](Communicator& c) { return train_part(config_in(one, 1), c, 1); });
  const auto resume = [&](Communicator& c) {
    const RunConfig config = config_in(c.rank() == 0 ? one : other, 2);
    Backend backend = make_backend(config.train, 2);
    Trainer trainer(config, c, backend);
    return int(resume_state(trainer, c, config, {}));
  };
  CHECK_THROWS_WITH(run_ranks(2, resume),
                    Catch::Contains("is step-00000001 for rank 0 and none for rank 1"));
}

}  // namespace
}  // namespace gxp
