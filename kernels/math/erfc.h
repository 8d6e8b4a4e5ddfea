// The complementary error function, 1 - erf(z), without the cancellation of that difference.
#pragma once

#include "kernels/math/exp.h"

namespace gxp {

// erfc(z) for z >= 0, where `exponential` is e^(-z^2): e^(z^2) erfc(z) = N(z) / D(z) up to z = 9.4,
// where e^(-z^2) ceases to be a normal float. N and D have degrees 4 and 5, and positive
// coefficients, so that no sum cancels; their quotient has nearly the least relative error, 5e-9
// (Lawson's weighted least squares, in 128 bits).
// Measured errors, besides that of `exponential`: 2e-7 absolute, 5e-7 relative. NaN for NaN.
template <class F>
GXP_HOST_DEVICE F erfc_of(F z, F exponential) {
  const F at = z < 10.0f ? z : F{} + 10.0f;  // its powers stay finite
  F n = at * 0.0321571976f + 0.226163894f;
  n = n * at + 0.725183368f;
  n = n * at + 1.23226511f;
  n = n * at + 1.0f;
  F d = at * 0.0569963343f + 0.400894612f;
  d = d * at + 1.31338441f;
  d = d * at + 2.38887763f;
  d = d * at + 2.36064482f;
  d = d * at + 1.0f;
  return exponential * (n * reciprocal(d));
}

}  // namespace gxp
