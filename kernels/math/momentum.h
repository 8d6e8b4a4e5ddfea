// One element of momentum, and of the gradient descent along it.
#pragma once

#include "kernels/math/host_device.h"

namespace gxp {

// Values that all elements of a step share: computed in double, used in float.
struct MomentumFactors {
  float gradient_scale;  // multiplied into the gradient first (clipping)
  float kept, fresh;     // weights of the momentum and the gradient in the new momentum
  float carried, ahead;  // weights of both in the direction (Nesterov)
};

template <class F>
struct MomentumElement {
  F momentum, direction;
};

// `g` is the gradient, scaled.
template <class F>
GXP_HOST_DEVICE MomentumElement<F> momentum_update(F momentum, F g, const MomentumFactors& f) {
  const F updated = momentum * f.kept + g * f.fresh;
  return {updated, updated * f.carried + g * f.ahead};
}

struct SgdFactors {
  MomentumFactors momentum;
  float lr;
  float decay;
};

// Gradient descent decays the weight as a part of the gradient, with and without momentum.
template <class F>
GXP_HOST_DEVICE F decayed_gradient(F weight, F gradient, const SgdFactors& f) {
  return gradient * f.momentum.gradient_scale + weight * f.decay;
}

}  // namespace gxp
