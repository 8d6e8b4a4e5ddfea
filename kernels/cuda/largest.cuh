// The largest |x| of a kernel's output (Tensor::largest), computed by the same kernel.
#pragma once

#include <array>

#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/reduce.cuh"

namespace gxp {

__device__ __forceinline__ uint32_t magnitude_of(float x) {
  return bits_as<uint32_t>(x) & 0x7fffffffu;
}

// Of one thread's elements. Magnitudes are in the order of their bits, a NaN above all; and
// rounding keeps that order, so the largest one is rounded, not each. A maximum does not depend on
// the order in which warps come to it.
struct LargestWritten {
  // Also for zeros, so a value of 0 means that no kernel has written it.
  static constexpr uint32_t kLeast = 1;
  uint32_t magnitude = kLeast;

  template <int N>
  __device__ __forceinline__ void see(const Floats<N>& values) {
    for (int j = 0; j < N; ++j) magnitude = Max()(magnitude, magnitude_of(values.at[j]));
  }
  // Raises `place`, if it is not null, to what the warp has seen and has written as T. All lanes of
  // the warp call it; blocks are a multiple of 32 threads wide.
  template <class T>
  __device__ __forceinline__ void raise(float* place) const {
    if (place == nullptr) return;
    const uint32_t of_warp = reduce_warp(magnitude, Max());
    if (threadIdx.x % kWarpLanes != 0) return;
    const uint32_t written = magnitude_of(to_float(round_to<T>(bits_as<float>(of_warp))));
    const uint32_t most = Max()(kLeast, written);
    auto* const bits = reinterpret_cast<uint32_t*>(place);
    // Nearly all warps find a larger one there, and need no atomic.
    if (most > *const_cast<const volatile uint32_t*>(bits)) atomicMax(bits, most);
  }
};

template <size_t count>
struct LargestPointers {
  float* at[count];  // each may be null
};

// for_each_kernel() of a body that shows what it writes to its arrays of T:
// body.run<N>(i, largest), with a LargestWritten for each of them.
template <class T, int N, class Body, size_t written>
__global__ void for_each_with_largest_kernel(size_t count, Body body,
                                             LargestPointers<written> pointers) {
  LargestWritten largest[written];
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  const size_t groups = count / N;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < groups; i += stride)
    body.template run<N>(i * N, largest);
  if (blockIdx.x == 0)
    for (size_t i = groups * N + threadIdx.x; i < count; i += blockDim.x)
      body.template run<1>(i, largest);
#pragma unroll
  for (size_t i = 0; i < written; ++i) largest[i].template raise<T>(pointers.at[i]);
}

template <class T, class Body, size_t written>
cudaError_t for_each_with_largest(const GpuStream& stream, size_t count, bool in_fours,
                                  const Body& body, const LargestPointers<written>& pointers) {
  if (count == 0) return cudaSuccess;
  constexpr unsigned kThreads = 256;
  const size_t groups = in_fours ? (count + 3) / 4 : count;
  const auto config = config_of(stream, blocks_for(stream.gpu, groups, kThreads), kThreads);
  return in_fours ? cudaLaunchKernelEx(&config, for_each_with_largest_kernel<T, 4, Body, written>,
                                       count, body, pointers)
                  : cudaLaunchKernelEx(&config, for_each_with_largest_kernel<T, 1, Body, written>,
                                       count, body, pointers);
}

}  // namespace gxp
