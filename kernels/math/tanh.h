// tanh, and the cap of scores and logits that is made with it (Gemma 2, arXiv:2408.00118).
#pragma once

#include "kernels/math/exp.h"

namespace gxp {

// tanh x, to 2e-7 relative for every x: 1 - 2 / (e^2|x| + 1) would cancel near 0, so
// x + x^3 P(x^2) below 0.625, where P interpolates (tanh(x) / x - 1) / x^2 at the five Chebyshev
// points of that interval's squares: 1.7e-8 relative. NaN for NaN.
template <class F>
GXP_HOST_DEVICE F tanh_of(F x) {
  const F size = x < 0.0f ? -x : x;
  const F x2 = x * x;
  const F low = x2 * 1.33327697e-1f - 3.33333289e-1f;
  const F high = x2 * (x2 * -6.09671417e-3f + 2.0997179e-2f) - 5.38509096e-2f;
  const F near_zero = x * x2 * (x2 * x2 * high + low) + x;
  const F from_zero = 1.0f - 2.0f * reciprocal(exp_of(size + size) + 1.0f);
  const F elsewhere = x < 0.0f ? -from_zero : from_zero;
  return size < 0.625f ? near_zero : elsewhere;
}

// cap * tanh(x / cap).
template <class F>
GXP_HOST_DEVICE F capped(F x, float cap) {
  return tanh_of(x * (1.0f / cap)) * cap;
}

// The derivative of capped() where its value is `value`: 1 - tanh^2.
template <class F>
GXP_HOST_DEVICE F slope_of_capped(F value, float cap) {
  const F share = value * (1.0f / cap);
  return 1.0f - share * share;
}

}  // namespace gxp
