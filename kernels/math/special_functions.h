// Approximations by a GPU's special function units, for the math of this folder. They take one
// instruction where the exact functions take 14 (e^x) and 9 to 40 (a reciprocal), and their errors
// are small compared with the rounding of 16-bit results.
//
// Errors, in units of the last place: 2^x has 2, and e^x = 2^(x log2 e) so 2 + 1.173 |x| (CUDA C++
// Programming Guide, intrinsic functions: __expf); a reciprocal has 1 (PTX ISA: rcp.approx).
// Results that would be subnormal are 0.
#pragma once

#include "kernels/math/host_device.h"

namespace gxp {

#ifdef __CUDA_ARCH__
constexpr bool kHasSpecialFunctions = true;

__device__ __forceinline__ float special_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ __forceinline__ float special_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
#else
constexpr bool kHasSpecialFunctions = false;
#endif

}  // namespace gxp
