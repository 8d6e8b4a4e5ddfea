// Products on tensor cores, by one warp whose 32 lanes call together: PTX ISA, "Warp-level matrix
// instructions" and "Asynchronous copy". T is Bf16 or Fp16; a register holds two neighbouring
// elements, the first in its low half. The tests' emulation has its own of this header.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/attention/mma_fragments.cuh"
#include "kernels/cuda/half.cuh"

namespace gxp {

// sums += left * right.
template <class T>
__device__ __forceinline__ void mma_16x8x16(SumFragment& sums, const LeftFragment& left,
                                            const RightFragment& right);
template <>
__device__ __forceinline__ void mma_16x8x16<Bf16>(SumFragment& sums, const LeftFragment& left,
                                                  const RightFragment& right) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums.at[0]), "+f"(sums.at[1]), "+f"(sums.at[2]), "+f"(sums.at[3])
      : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "r"(right.at[0]),
        "r"(right.at[1]));
}
template <>
__device__ __forceinline__ void mma_16x8x16<Fp16>(SumFragment& sums, const LeftFragment& left,
                                                  const RightFragment& right) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums.at[0]), "+f"(sums.at[1]), "+f"(sums.at[2]), "+f"(sums.at[3])
      : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "r"(right.at[0]),
        "r"(right.at[1]));
}

// An address in shared memory. Addresses at a constant distance from it need no further register.
struct SharedAddress {
  uint32_t address;
  __device__ __forceinline__ SharedAddress operator+(int bytes) const {
    return {address + uint32_t(bytes)};
  }
};
__device__ __forceinline__ SharedAddress shared_address(const void* at) {
  return {uint32_t(__cvta_generic_to_shared(at))};
}

// Four matrices of 8 x 8 elements in shared memory: lane 8 i + r gives the address of row r of
// matrix i, a multiple of 16 bytes.
__device__ __forceinline__ FourMatrices load_matrices(SharedAddress row) {
  FourMatrices m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m.at[0]), "=r"(m.at[1]), "=r"(m.at[2]), "=r"(m.at[3])
               : "r"(row.address));
  return m;
}
__device__ __forceinline__ FourMatrices load_transposed_matrices(SharedAddress row) {
  FourMatrices m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m.at[0]), "=r"(m.at[1]), "=r"(m.at[2]), "=r"(m.at[3])
               : "r"(row.address));
  return m;
}

// Starts to copy kBytes (4 or 16, to which both addresses are aligned) to shared memory; zeros if
// the source is not `present`: it is not read then.
template <int kBytes>
__device__ __forceinline__ void start_copy(SharedAddress to, const void* from, bool present) {
  const int bytes = present ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to.address), "l"(from),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to.address), "l"(from),
                 "n"(kBytes), "r"(bytes)
                 : "memory");
  }
}
// Returns when the calling thread's copies are done; a barrier shows them to the others.
__device__ __forceinline__ void finish_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// 2^x to 2 units in the last place, 0 for -infinity.
__device__ __forceinline__ float fast_exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

}  // namespace gxp
