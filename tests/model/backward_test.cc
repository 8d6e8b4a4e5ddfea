// The whole backward of each family of lib/arch/family.h, by no more than its row: against central
// differences of its loss, over micro-batches, and from activations that are made again.
#include "tests/model/slopes.h"

namespace gxp {
namespace {

TEST_CASE("each family's gradients are the slopes of its loss", "[model]") {
  const ModelConfig config = GENERATE(from_range(small_models()));
  CAPTURE(config.family, config.ties_head());
  SmallRun run(config);
  check_slopes(run);
}

const LoraConfig kDropping = {.rank = 2, .alpha = 3, .dropout = 0.3};

TEST_CASE("the gradients of adapters are the slopes of the loss, with what dropout leaves",
          "[model]") {
  const ModelConfig config = GENERATE(from_range(small_models()));
  CAPTURE(config.family, config.ties_head());
  SmallRun run(config, KeptOutputs::kNone, kDropping);
  check_slopes(run);
  LoraConfig keeping = kDropping;
  keeping.dropout = 0;
  CHECK(run.loss() != SmallRun(config, KeptOutputs::kNone, keeping).loss());
}

TEST_CASE("each family's gradients are added up over micro-batches", "[model]") {
  SmallRun run(GENERATE(from_range(small_models())));
  run.differentiate(false);
  const auto once = run.gradients();
  run.differentiate(true);
  for (size_t unit = 0; unit < once.size(); ++unit) {
    for (size_t tensor = 0; tensor < once[unit].size(); ++tensor) {
      for (size_t i = 0; i < once[unit][tensor].size(); ++i)
        CHECK(run.gradients()[unit][tensor][i] ==
              Approx(2 * once[unit][tensor][i]).epsilon(1e-4).margin(1e-4));
    }
  }
}

TEST_CASE("each family's gradients have the same bits, whatever is kept and made again",
          "[model]") {
  const ModelConfig config = GENERATE(from_range(small_models()));
  const LoraConfig lora = GENERATE(LoraConfig(), kDropping);
  SmallRun plain(config, KeptOutputs::kNone, lora);
  plain.differentiate(false);
  for (const KeptOutputs kept : {KeptOutputs::kNone, KeptOutputs::kNorms, KeptOutputs::kAll}) {
    SmallRun run(config, kept, lora);
    for (const Recompute again : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      run.differentiate(false, again);
      CAPTURE(config.family, lora.rank, kept, again);
      CHECK(run.gradients() == plain.gradients());
    }
  }
}

}  // namespace
}  // namespace gxp
