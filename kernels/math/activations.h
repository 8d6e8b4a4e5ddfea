// The functions of lib/base/decoder/activation.h. Each is a struct that has them as value(x), and as
// value_and_slope(x), whose value has the same bits. One more function is a struct here, its place
// in the list at the end of elementwise.h, and a case of math_of() (kernels/elementwise.cc).
#pragma once

#include "kernels/math/gelu.h"
#include "kernels/math/gelu_erf.h"
#include "kernels/math/silu.h"
#include "kernels/math/value_and_slope.h"

namespace gxp {

struct GeluTanh {
  template <class F>
  GXP_HOST_DEVICE static F value(F x) {
    return gelu(x);
  }
  template <class F>
  GXP_HOST_DEVICE static ValueAndSlope<F> value_and_slope(F x) {
    return gelu_and_slope(x);
  }
};

struct Gelu {
  template <class F>
  GXP_HOST_DEVICE static F value(F x) {
    return gelu_erf(x);
  }
  template <class F>
  GXP_HOST_DEVICE static ValueAndSlope<F> value_and_slope(F x) {
    return gelu_erf_and_slope(x);
  }
};

struct Silu {
  template <class F>
  GXP_HOST_DEVICE static F value(F x) {
    return silu(x);
  }
  template <class F>
  GXP_HOST_DEVICE static ValueAndSlope<F> value_and_slope(F x) {
    return silu_and_slope(x);
  }
};

// The slope at 0 is 0. NaN stays NaN.
struct Relu {
  template <class F>
  GXP_HOST_DEVICE static F value(F x) {
    return x < 0.0f ? F{} : x;
  }
  template <class F>
  GXP_HOST_DEVICE static ValueAndSlope<F> value_and_slope(F x) {
    return {value(x), x > 0.0f ? F{} + 1.0f : F{}};
  }
};

}  // namespace gxp
