// The approximations of an emulated GPU, with the largest errors that NVIDIA documents, up or down
// by the argument's bits; found in place of kernels/math's header.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/math/host_device.h"

namespace gxp {

constexpr bool kHasSpecialFunctions = true;

namespace emulation {

// `exact` by `ulps` too large or too small; 0 where it is subnormal.
inline float with_error(double exact, float argument, double ulps) {
  const uint32_t hash = bits_as<uint32_t>(argument) * 2654435761u;
  const double sign = (hash >> 31) != 0 ? 1 : -1;
  const auto result = float(exact * (1 + sign * ulps * 0x1p-24));
  return std::fabs(result) < 0x1p-126f ? 0.0f : result;
}

}  // namespace emulation

inline float special_exp2(float x) {
  return emulation::with_error(std::exp2(double(x)), x, x == 0 ? 0 : 2);  // exact at 0
}

inline float special_reciprocal(float x) { return emulation::with_error(1.0 / x, x, 1); }

}  // namespace gxp
