// Dropout of adapters: the same elements wherever, and with whatever others, a sample is trained.
#include "tests/train/golden.h"

namespace gxp {
namespace {

const Settings kDropping = {"lora.rank=4", "lora.dropout=0.3", "train.steps=3",
                            "train.micro_batch=1", "train.deterministic=any-world-size"};

Trained train_on(const std::string& folder, int ranks, const Settings& how = {}) {
  const Settings shape = {fmt::format("train.grad_accum={}", 4 / ranks)};
  return train_on_ranks(golden_config(folder, ranks, kDropping + shape + how), ranks)[0];
}

TEST_CASE("any-world-size: any number of ranks drops the same, under every strategy", "[train]") {
  const std::string folder = GENERATE("gpt2-tiny", "llama-tiny");
  const int ranks = GENERATE(1, 2, 4);
  const Settings how = GENERATE(values<Settings>({{},
                                                  {"parallel.strategy=zero1"},
                                                  {"parallel.strategy=zero3"},
                                                  {"train.recompute=full"},
                                                  {"train.recompute=selective"}}));
  CAPTURE(folder, ranks, how);
  check_same(train_on(folder, ranks, how), train_on(folder, 1));
}

TEST_CASE("each seed drops others", "[train]") {
  const auto gradients_with = [](const Settings& sets) {
    return train_on("llama-tiny", 1, sets).first_gradients;
  };
  const auto one = gradients_with({"train.seed=1"});
  CHECK(one == gradients_with({"train.seed=1"}));
  CHECK(one != gradients_with({"train.seed=2"}));
  CHECK(one != gradients_with({"train.seed=1", "lora.dropout=0"}));
}

TEST_CASE("a resumed run drops what the whole run drops", "[train]") {
  const TemporaryDirectory directory;
  const RunConfig config = golden_config(
      "llama-tiny", 1,
      kDropping + Settings{"train.grad_accum=4", "checkpoint.dir=" + directory.path()});
  run_ranks(1, [&](Communicator& c) { return train_part(config, c, 1); });
  const Trained resumed =
      run_ranks(1, [&](Communicator& c) { return train_part(config, c, 3); })[0];
  CHECK(same_bits(resumed.weights, train_on("llama-tiny", 1).weights));
}

}  // namespace
}  // namespace gxp
