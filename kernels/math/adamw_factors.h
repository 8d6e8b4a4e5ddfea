// What all elements of an AdamW step share, from the step's settings: in double, on the host.
#pragma once

#include <cmath>

#include "kernels/math/adamw.h"
#include "kernels/ops.h"

namespace gxp {

inline AdamWFactors adamw_factors(const AdamWStep& step) {
  const auto t = static_cast<double>(step.step);
  return {.gradient_scale = float(step.gradient_scale),
          .decay = float(step.lr * step.weight_decay),
          .l2 = float(step.l2),
          .beta1 = float(step.beta1),
          .beta2 = float(step.beta2),
          .fresh1 = float(1 - step.beta1),
          .fresh2 = float(1 - step.beta2),
          .step_size = float(step.lr / (1 - std::pow(step.beta1, t))),
          .root_correction = float(1 / std::sqrt(1 - std::pow(step.beta2, t))),
          .eps = float(step.eps)};
}

}  // namespace gxp
