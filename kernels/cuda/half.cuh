// Elements as they lie in a GPU's memory: f32, bf16 or f16, read as floats and rounded to nearest,
// ties to even, as lib/base/dtype.h does (a NaN becomes some NaN).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

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

// The same elements as they lie in memory.
template <int N, class T>
struct alignas(N * sizeof(T)) Group {
  T at[N];
};

template <int N, class T>
__device__ __forceinline__ Floats<N> load(const T* from) {
  const Group<N, T> group = *reinterpret_cast<const Group<N, T>*>(from);
  Floats<N> floats;
  for (int i = 0; i < N; ++i) floats.at[i] = to_float(group.at[i]);
  return floats;
}

// Two neighbours in one register, the first in its low half.
template <class T>
__device__ __forceinline__ uint32_t pack_halves(float low, float high) {
#ifdef __CUDA_ARCH__
  uint32_t pair;
  if constexpr (std::is_same_v<T, Bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return uint32_t{round_to<T>(low).bits} | uint32_t{round_to<T>(high).bits} << 16;
#endif
}

template <class T, int N>
__device__ __forceinline__ Group<N, T> round_all(const Floats<N>& floats) {
  if constexpr (N == 4 && sizeof(T) == 2) {
    const uint2 pairs = {pack_halves<T>(floats.at[0], floats.at[1]),
                         pack_halves<T>(floats.at[2], floats.at[3])};
    return bits_as<Group<N, T>>(pairs);
  } else {
    Group<N, T> group;
    for (int i = 0; i < N; ++i) group.at[i] = round_to<T>(floats.at[i]);
    return group;
  }
}

// To global memory, not to shared memory. A group of four is one instruction, by name: where a
// kernel has several groups under way, nvcc cuts assignments of structs, and of its own vector
// types, into elements (tests/cuda/split_stores.py looks for these).
template <int N, class T>
__device__ __forceinline__ void store(T* to, const Group<N, T>& group) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof group == sizeof(uint4)) {
    const auto words = bits_as<uint4>(group);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
                 : "memory");
  } else if constexpr (sizeof group == sizeof(uint2)) {
    const auto words = bits_as<uint2>(group);
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(words.x), "r"(words.y)
                 : "memory");
  } else
#endif
    *reinterpret_cast<Group<N, T>*>(to) = group;
}
template <int N, class T>
__device__ __forceinline__ void store(T* to, const Floats<N>& floats) {
  store(to, round_all<T>(floats));
}

// Floats to where they may be in a block's shared memory.
template <int N>
__device__ __forceinline__ void store_anywhere(float* to, const Floats<N>& floats) {
  *reinterpret_cast<Group<N, float>*>(to) = bits_as<Group<N, float>>(floats);
}

}  // namespace gxp
