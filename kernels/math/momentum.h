// One element of momentum, and of the gradient descent along it.
#pragma once

#include "kernels/math/host_device.h"

namespace gxp {

// What all elements of a step share: computed in double, used in float.
struct MomentumFactors {
  float gradient_scale;  // multiplied into the gradient first (clipping)
  float kept, fresh;     // of the momentum and of the gradient in the new momentum
  float carried, ahead;  // of the new momentum and of the gradient in the direction (Nesterov)
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

// Of gradient descent, which decays the weight either way: as a part of the gradient that the
// momentum keeps, or (no momentum) of the step, which is the same.
struct SgdFactors {
  MomentumFactors momentum;
  float lr;
  float decay;
};

}  // namespace gxp
