// exp and reciprocals in float: with the same steps on every CPU, by its special function units on a
// GPU.
#pragma once

#include "kernels/math/special_functions.h"

namespace gxp {

// 1 / x.
template <class F>
GXP_HOST_DEVICE F reciprocal(F x) {
  if constexpr (kHasSpecialFunctions)
    return special_reciprocal(x);
  else
    return 1.0f / x;
}

constexpr float kLog2E = 1.44269504f;

// x = n ln 2 + r with |r| <= ln(2) / 2; then e^r = 1 + r + r^2 P(r), where P interpolates
// (e^r - 1 - r) / r^2 at the five Chebyshev points of that interval: 1.1e-8 relative. P is summed
// by Estrin's scheme, whose chain of dependent operations is shorter than Horner's.
template <class F>
GXP_HOST_DEVICE F exp_by_polynomial(F x) {
  using Bits = typename BitsOf<F>::Type;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low mantissa bits; 127 is the bias
  // of the exponent, so that shifting these bits up makes 2^n.
  constexpr float kRound = 12582912.0f + 127.0f;
  const F shifted = x * kLog2E + kRound;
  const F n = shifted - kRound;
  // ln 2 in two parts; the first has 10 bits, so that its product with n is exact.
  F r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  const F r2 = r * r;
  const F low = r * 1.66665763e-1f + 5.0e-1f;
  const F high = r2 * 1.39262131e-3f + (r * 8.36320315e-3f + 4.16665561e-2f);
  const F e_to_r = (high * r2 + low) * r2 + r + 1.0f;
  const F power_of_two = bits_as<F>(static_cast<Bits>(bits_as<Bits>(shifted) << 23));
  const F result = e_to_r * power_of_two;
  return x < -87.0f ? F{} : result;
}

// e^x for -87 <= x <= 88.3, to 2e-7 relative, on a GPU to 2e-7 + 7e-8 |x|; 0 below that range, where
// results begin to be subnormal (e^-87 = 1.6e-38); NaN for NaN, meaningless above. For softmax,
// whose x is never positive.
template <class F>
GXP_HOST_DEVICE F exp_of_nonpositive(F x) {
  if constexpr (kHasSpecialFunctions)
    return special_exp2(x * kLog2E);
  else
    return exp_by_polynomial(x);
}

// The same for any x: infinity above 88.3, near where float ends.
template <class F>
GXP_HOST_DEVICE F exp_of(F x) {
  const F result = exp_of_nonpositive(x);
  if constexpr (kHasSpecialFunctions)
    return result;
  else
    return x > 88.3f ? F{} + __builtin_inff() : result;
}

}  // namespace gxp
