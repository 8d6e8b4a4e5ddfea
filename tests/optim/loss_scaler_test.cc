#include "lib/optim/loss_scaler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

using Scales = std::vector<double>;

// The scale after each of `steps` updates, those of `overflows` being overflows.
Scales scales_of(LossScaler& scaler, int steps, const std::vector<int>& overflows) {
  Scales scales;
  for (int step = 0; step < steps; ++step) {
    CHECK(scaler.update(std::ranges::find(overflows, step) != overflows.end()));
    scales.push_back(scaler.scale());
  }
  return scales;
}

Scales runs(const std::vector<std::pair<int, double>>& lengths) {
  Scales scales;
  for (const auto& [length, scale] : lengths) scales.insert(scales.end(), size_t(length), scale);
  return scales;
}

constexpr Fp16Config kShortWindow = {.initial_scale_power = 16, .window = 4, .hysteresis = 2};

TEST_CASE("the scale rises and falls as DeepSpeed's does", "[optim]") {
  LossScaler scaler(kShortWindow);
  CHECK(scales_of(scaler, 20, {6, 8, 9}) ==
        runs({{4, 65536}, {4, 131072}, {1, 65536}, {5, 32768}, {4, 65536}, {2, 131072}}));
}

TEST_CASE("consecutive hysteresis is refilled by every clean step", "[optim]") {
  Fp16Config config = kShortWindow;
  config.consecutive_hysteresis = true;
  LossScaler scaler(config);
  CHECK(scales_of(scaler, 20, {6, 8, 9}) ==
        runs({{4, 65536}, {5, 131072}, {5, 65536}, {4, 131072}, {2, 262144}}));
}

TEST_CASE("at its minimum the scale cannot fall: training is over", "[optim]") {
  LossScaler scaler({.initial_scale_power = 1, .hysteresis = 1, .min_scale = 1});
  CHECK(scaler.update(true));
  CHECK(scaler.scale() == 1);
  CHECK_FALSE(scaler.update(true));
  CHECK(scaler.scale() == 1);
}

TEST_CASE("a scaler that continues from a state does as if it had never stopped", "[optim]") {
  const std::vector<int> overflows = {2, 6, 8, 9, 15};
  for (int stop = 0; stop < 20; ++stop) {
    LossScaler whole(kShortWindow);
    LossScaler before(kShortWindow);
    for (int step = 0; step < 20; ++step) {
      const bool overflow = std::ranges::find(overflows, step) != overflows.end();
      CHECK(whole.update(overflow));
      if (step == stop) before = LossScaler(kShortWindow, before.state());
      CHECK(before.update(overflow));
      CHECK(before.scale() == whole.scale());
    }
  }
}

}  // namespace
}  // namespace gxp
