// A backward pass against central differences of its loss.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/model/small_run.h"

namespace gxp {

// The loss's slope along one parameter, by central differences of order 4 (the error is h^4 / 30 of
// the fifth derivative). The step balances that with the rounding of f32 losses.
inline double slope(SmallRun& run, float& parameter) {
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

inline void check_slopes(SmallRun& run) {
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

}  // namespace gxp
