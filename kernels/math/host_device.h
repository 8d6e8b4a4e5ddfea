// How the per-element math in this folder is compiled: inlined everywhere, for the host and (under
// nvcc) for the device.
//
// Each function is a template over F, which is `float`, or one of the compiler's vector types: the
// CPU kernels pass a whole vector (kernels/cpu/vec.inc), CUDA passes a float. So the code has no
// branches: it computes every case and selects, and comparisons give a bool or a mask. Always
// inlined, because these headers are also included under `#pragma GCC target` (kernels/cpu/isa.h):
// a copy compiled for AVX-512 must never be the one the linker keeps for everybody.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#ifdef __CUDACC__
#define GXP_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define GXP_HOST_DEVICE inline __attribute__((always_inline))
#endif

namespace gxp {

// The integers as wide as F's elements: int32_t for float, a vector of them for a vector.
template <class F>
struct BitsOf {
  using Type = decltype(F{} < F{});
};
template <>
struct BitsOf<float> {
  using Type = int32_t;
};
template <>
struct BitsOf<double> {
  using Type = int64_t;
};

// The same bits as another type of the same size.
template <class To, class From>
GXP_HOST_DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

template <class F, size_t... lane>
GXP_HOST_DEVICE F square_root_of_lanes(F x, std::index_sequence<lane...>) {
  ((x[lane] = __builtin_sqrtf(x[lane])), ...);  // becomes one instruction
  return x;
}
template <class F>
GXP_HOST_DEVICE F square_root(F x) {
  if constexpr (sizeof(F) == sizeof(float))
    return sqrtf(x);
  else
    return square_root_of_lanes(x, std::make_index_sequence<sizeof(F) / sizeof(float)>());
}

}  // namespace gxp
