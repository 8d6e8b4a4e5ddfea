// Elements as they lie in a GPU's memory: f32, bf16 or f16, read as floats and rounded to nearest,
// ties to even, as lib/base/dtype.h does (a NaN becomes some NaN).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/math/host_device.h"
#include "lib/base/dtype.h"

namespace gxp {

struct Bf16 {
  uint16_t bits;
};
struct Fp16 {
  uint16_t bits;
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(Bf16 x) { return bits_as<float>(uint32_t{x.bits} << 16); }
__device__ __forceinline__ float to_float(Fp16 x) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
#else
  Float16 half;
  half.bits = x.bits;
  return float(half);
#endif
}

// The element of type T nearest to a float: round_to<Bf16>(x).
template <class T>
__device__ __forceinline__ T round_to(float x);
template <>
__device__ __forceinline__ float round_to<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ Bf16 round_to<Bf16>(float x) {
#ifdef __CUDA_ARCH__
  Bf16 half;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  return half;
#else
  return {BFloat16(x).bits};
#endif
}
template <>
__device__ __forceinline__ Fp16 round_to<Fp16>(float x) {
#ifdef __CUDA_ARCH__
  Fp16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  return half;
#else
  return {Float16(x).bits};
#endif
}

// N neighbouring elements as floats. N is 1 or 4; of four the address is a multiple of their size.
template <int N>
struct Floats {
  float at[N];
};

template <int N, class T>
__device__ __forceinline__ Floats<N> load(const T* from) {
  struct alignas(N * sizeof(T)) Group {
    T at[N];
  };
  const Group group = *reinterpret_cast<const Group*>(from);
  Floats<N> floats;
  for (int i = 0; i < N; ++i) floats.at[i] = to_float(group.at[i]);
  return floats;
}

template <int N, class T>
__device__ __forceinline__ void store(T* to, const Floats<N>& floats) {
  struct alignas(N * sizeof(T)) Group {
    T at[N];
  };
  Group group;
  for (int i = 0; i < N; ++i) group.at[i] = round_to<T>(floats.at[i]);
  *reinterpret_cast<Group*>(to) = group;
}

}  // namespace gxp
