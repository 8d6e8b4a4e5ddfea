// What all elements of an optimizer's step share, from the step's settings: in double, on the host.
#pragma once

#include "kernels/math/lion.h"
#include "kernels/math/momentum.h"
#include "kernels/ops.h"

namespace gxp {

inline MomentumFactors momentum_factors(const MomentumStep& step) {
  return {.gradient_scale = float(step.gradient_scale),
          .kept = float(step.kept),
          .fresh = float(step.fresh),
          .carried = float(step.carried),
          .ahead = float(step.ahead)};
}

inline LionFactors lion_factors(const LionStep& step) {
  return {.gradient_scale = float(step.gradient_scale),
          .lr = float(step.lr),
          .decay = float(step.lr * step.weight_decay),
          .beta1 = float(step.beta1),
          .fresh1 = float(1 - step.beta1),
          .beta2 = float(step.beta2),
          .fresh2 = float(1 - step.beta2)};
}

}  // namespace gxp
