// The whole backward of each family of lib/arch/family.h, by no more than its row: against central
// differences of its loss, over micro-batches, and from activations that are made again.
#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/model/small_run.h"

namespace gxp {
namespace {

// The loss's slope along one parameter, by central differences of order 4 (the error is h^4 / 30 of
// the fifth derivative). The step balances that with the rounding of f32 losses.
double slope(SmallRun& run, float& parameter) {
  constexpr float kStep = 0x1p-8f;
  const float at = parameter;
  const auto loss_at = [&](float steps) {
    parameter = at + steps * kStep;
    return run.loss();
  };
  const double near = loss_at(1) - loss_at(-1);
  const double far = loss_at(2) - loss_at(-2);
  parameter = at;
  return (8 * near - far) / (12 * double(kStep));
}

void check_slopes(SmallRun& run) {
  run.differentiate(false);
  const auto gradients = run.gradients();
  for (size_t unit = 0; unit < gradients.size(); ++unit) {
    for (size_t tensor = 0; tensor < gradients[unit].size(); ++tensor) {
      if (run.units()[unit].tensors[tensor].frozen) continue;
      CAPTURE(run.units()[unit].tensors[tensor].name);
      const Floats& gradient = gradients[unit][tensor];
      double largest = 0;
      double worst = 0;
      for (size_t i = 0; i < gradient.size(); ++i) {
        largest = std::max(largest, std::abs(double(gradient[i])));
        const double difference = slope(run, run.parameters(unit, tensor)[i]) - gradient[i];
        worst = std::max(worst, std::abs(difference));
      }
      CHECK(worst < 1e-3 * largest + 5e-4);
    }
  }
}

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
