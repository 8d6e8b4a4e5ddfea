// SiLU, x times its sigmoid: the gate of SwiGLU. Shazeer, arXiv:2002.05202.
#pragma once

#include "kernels/math/exp.h"
#include "kernels/math/value_and_slope.h"

namespace gxp {

template <class F>
GXP_HOST_DEVICE F silu(F x) {
  return x * reciprocal(exp_of(-x) + 1.0f);
}

// silu(x), with the bits of silu(), and its derivative: gate + x gate (1 - gate).
template <class F>
GXP_HOST_DEVICE ValueAndSlope<F> silu_and_slope(F x) {
  const F e = exp_of(-x);
  const F gate = reciprocal(e + 1.0f);
  // e gate is 1 - gate without its cancellation, but no number where e is infinite.
  const F rest = gate > 0.5f ? e * gate : 1.0f - gate;
  return {x * gate, x * gate * rest + gate};
}

}  // namespace gxp
