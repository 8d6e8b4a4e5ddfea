// Sums and maxima over a warp and a block, in a fixed order: the same in every run.
#pragma once

#include <cuda_runtime.h>

namespace gxp {

constexpr int kWarpLanes = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

struct Add {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// `fold` over the warp's lanes, all 32 of which call it; every lane gets the result.
template <class T, class Fold>
__device__ __forceinline__ T reduce_warp(T value, Fold fold) {
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2)
    value = fold(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

// Over a block of blockDim.x threads, a multiple of 32, all of which call it; every thread gets the
// result. `none` changes nothing when folded in. The barriers at its ends let it be called again.
template <class T, class Fold>
__device__ T reduce_block(T value, Fold fold, T none) {
  __shared__ T of_warps[kWarpLanes];
  const unsigned lane = threadIdx.x % kWarpLanes;
  const unsigned warp = threadIdx.x / kWarpLanes;
  value = reduce_warp(value, fold);
  __syncthreads();
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  return reduce_warp(lane < blockDim.x / kWarpLanes ? of_warps[lane] : none, fold);
}

}  // namespace gxp
