// One element of each optimizer's step.
#pragma once

#include "kernels/math/host_device.h"

namespace gxp {

// Momentum, and gradient descent along it. Values that all elements of a step share, here and below,
// are computed in double and used in float.
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

// Lion: Chen et al., arXiv:2302.06675, algorithm 2.
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

// AdamW: Loshchilov & Hutter, arXiv:1711.05101; and Adam (Kingma & Ba, arXiv:1412.6980), whose
// decay is a part of the gradient.
struct AdamWFactors {
  float gradient_scale;   // multiplied into the gradient first (clipping)
  float decay;            // lr * weight_decay
  float l2;               // Adam's weight decay; 0 for AdamW, where it changes no bit
  float beta1, beta2;     // of the first and the second moment
  float fresh1, fresh2;   // 1 - beta1, 1 - beta2
  float step_size;        // lr / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float eps;
};

template <class F>
struct AdamWElement {
  F weight, first, second;
};

template <class F>
GXP_HOST_DEVICE AdamWElement<F> adamw_update(AdamWElement<F> e, F gradient, const AdamWFactors& f) {
  const F g = gradient * f.gradient_scale + e.weight * f.l2;
  const F decayed = e.weight - e.weight * f.decay;
  const F first = e.first * f.beta1 + g * f.fresh1;
  const F second = e.second * f.beta2 + g * g * f.fresh2;
  const F root = square_root(second) * f.root_correction + f.eps;
  return {decayed - f.step_size * (first / root), first, second};
}

}  // namespace gxp
