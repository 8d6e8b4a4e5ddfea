// GELU, tanh form. Hendrycks & Gimpel, arXiv:1606.08415.
//   gelu(x) = x/2 (1 + tanh u), u = sqrt(2 / pi) (x + 0.044715 x^3)
// Since (1 + tanh u) / 2 = 1 / (1 + e^-2u), it is x times a sigmoid: one exp and one division, and
// no cancellation for negative x.
#pragma once

#include "kernels/math/exp.h"
#include "kernels/math/value_and_slope.h"

namespace gxp {

constexpr float kGeluLinear = 1.59576912f;   // 2 sqrt(2 / pi)
constexpr float kGeluCubic = 0.0713548163f;  // 2 sqrt(2 / pi) * 0.044715

// e^-2u.
template <class F>
GXP_HOST_DEVICE F gelu_exponential(F x) {
  return exp_of(x * (-kGeluLinear - kGeluCubic * (x * x)));
}

template <class F>
GXP_HOST_DEVICE F gelu(F x) {
  return x * reciprocal(gelu_exponential(x) + 1.0f);
}

// gelu(x), with the bits of gelu(), and its derivative: gate + x gate (1 - gate) d(2u)/dx.
template <class F>
GXP_HOST_DEVICE ValueAndSlope<F> gelu_and_slope(F x) {
  const F e = gelu_exponential(x);
  const F gate = reciprocal(e + 1.0f);
  // e gate is 1 - gate without its cancellation, but no number where e is infinite.
  const F rest = gate > 0.5f ? e * gate : 1.0f - gate;
  const F inner_slope = 3.0f * kGeluCubic * (x * x) + kGeluLinear;
  return {x * gate, x * gate * rest * inner_slope + gate};
}

}  // namespace gxp
