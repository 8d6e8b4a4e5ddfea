// One element of Lion: Chen et al., arXiv:2302.06675, algorithm 2.
#pragma once

#include "kernels/math/host_device.h"

namespace gxp {

// Values that all elements of a step share: computed in double, used in float.
struct LionFactors {
  float gradient_scale;  // multiplied into the gradient first (clipping)
  float lr;
  float decay;          // lr * weight_decay
  float beta1, fresh1;  // of the momentum and of the gradient in the step's sign
  float beta2, fresh2;  // and in the new momentum
};

template <class F>
struct LionElement {
  F weight, momentum;
};

// x > 0 with the sign of v; v itself where that is 0 or NaN.
template <class F>
GXP_HOST_DEVICE F signed_like(float x, F v) {
  const F negative = v < F{} ? -x - F{} : v;
  return v > F{} ? x - F{} : negative;
}

template <class F>
GXP_HOST_DEVICE LionElement<F> lion_update(LionElement<F> e, F gradient, const LionFactors& f) {
  const F g = gradient * f.gradient_scale;
  const F decayed = e.weight - e.weight * f.decay;
  const F blend = e.momentum * f.beta1 + g * f.fresh1;
  return {decayed - signed_like(f.lr, blend), e.momentum * f.beta2 + g * f.fresh2};
}

}  // namespace gxp
