// Loads and stores at addresses that stand for memory of several GPUs (device/device_sharing.h,
// DeviceMulticast), 16 bytes at a time; the switch between the GPUs carries them out. PTX ISA 8.1,
// "multimem". For sm_90 and later: a GPU before has no such addresses, and traps.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/half.cuh"

namespace gxp {

enum class SwitchOp { kSum, kMin, kMax };

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define GXP_MULTIMEM(...) asm volatile(__VA_ARGS__)
#else
#define GXP_MULTIMEM(...) __trap()
#endif

// Orders accesses at such addresses, before and after, with those at the memory's own (PTX ISA,
// "Proxy"). Between kernels they are ordered anyway; this is for what runs beside this one.
__device__ __forceinline__ void multimem_fence() {
  GXP_MULTIMEM("fence.proxy.alias;" : : : "memory");
}

__device__ __forceinline__ void multimem_store(std::byte* to, const uint4& value) {
  GXP_MULTIMEM("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(to), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

// Four registers of elements, the sums over all places; the text names the operation and their type.
template <class T>
__device__ uint4 multimem_sum(const std::byte* at);
#define GXP_MULTIMEM_SUM(T, text)                                                         \
  template <>                                                                             \
  __device__ __forceinline__ uint4 multimem_sum<T>(const std::byte* at) {                 \
    uint4 value{};                                                                        \
    GXP_MULTIMEM("multimem.ld_reduce.relaxed.sys.global." text " {%0, %1, %2, %3}, [%4];" \
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)             \
                 : "l"(at)                                                                \
                 : "memory");                                                             \
    return value;                                                                         \
  }
GXP_MULTIMEM_SUM(float, "add.v4.f32")
GXP_MULTIMEM_SUM(Bf16, "add.acc::f32.v4.bf16x2")
GXP_MULTIMEM_SUM(Fp16, "add.acc::f32.v4.f16x2")
#undef GXP_MULTIMEM_SUM

// One integer, since they have no vectors.
template <class T, SwitchOp kOp>
__device__ T multimem_word(const std::byte* at);
#define GXP_MULTIMEM_WORD(T, kOp, constraint, text)                         \
  template <>                                                               \
  __device__ __forceinline__ T multimem_word<T, kOp>(const std::byte* at) { \
    T value{};                                                              \
    GXP_MULTIMEM("multimem.ld_reduce.relaxed.sys.global." text " %0, [%1];" \
                 : constraint(value)                                        \
                 : "l"(at)                                                  \
                 : "memory");                                               \
    return value;                                                           \
  }
GXP_MULTIMEM_WORD(int32_t, SwitchOp::kSum, "=r", "add.s32")
GXP_MULTIMEM_WORD(int32_t, SwitchOp::kMin, "=r", "min.s32")
GXP_MULTIMEM_WORD(int32_t, SwitchOp::kMax, "=r", "max.s32")
GXP_MULTIMEM_WORD(int64_t, SwitchOp::kSum, "=l", "add.u64")
GXP_MULTIMEM_WORD(int64_t, SwitchOp::kMin, "=l", "min.s64")
GXP_MULTIMEM_WORD(int64_t, SwitchOp::kMax, "=l", "max.s64")
#undef GXP_MULTIMEM_WORD
#undef GXP_MULTIMEM

// 16 bytes of elements T, all places reduced by kOp.
template <class T, SwitchOp kOp>
__device__ __forceinline__ uint4 multimem_reduce(const std::byte* at) {
  if constexpr (std::is_integral_v<T>) {
    union {
      T words[sizeof(uint4) / sizeof(T)];
      uint4 all;
    } value{};
#pragma unroll
    for (unsigned i = 0; i < sizeof(uint4) / sizeof(T); ++i)
      value.words[i] = multimem_word<T, kOp>(at + i * sizeof(T));
    return value.all;
  } else {
    static_assert(kOp == SwitchOp::kSum);
    return multimem_sum<T>(at);
  }
}

}  // namespace gxp
