// One element of AdamW: Loshchilov & Hutter, arXiv:1711.05101; and of Adam (Kingma & Ba,
// arXiv:1412.6980), whose decay is a part of the gradient.
#pragma once

#include "kernels/math/host_device.h"

namespace gxp {

// Values that all elements of a step share: computed in double, used in float.
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
