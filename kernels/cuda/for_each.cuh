// One call per element, four at a time where the arrays are aligned: the shape of every kernel that
// sees arrays element by element.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/half.cuh"
#include "kernels/cuda/launch.cuh"

namespace gxp {

// body.run<N>(i) for elements i .. i + N - 1. Grid-stride, so any launch shape is correct.
template <int N, class Body>
__global__ void for_each_kernel(size_t count, Body body) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  const size_t groups = count / N;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < groups; i += stride)
    body.template run<N>(i * N);
  if (blockIdx.x != 0) return;
  for (size_t i = groups * N + threadIdx.x; i < count; i += blockDim.x) body.template run<1>(i);
}

// Whether four elements at a time may be read and written in all of the arrays; a null one has
// none.
template <class... T>
bool lie_in_fours(const T*... arrays) {
  return ((reinterpret_cast<uintptr_t>(arrays) % (4 * sizeof(T)) == 0) && ...);
}

// Queues `body`, which is copied to the GPU, for every element. `in_fours`: all of its arrays lie
// in fours.
template <class Body>
cudaError_t for_each(cudaStream_t stream, size_t count, bool in_fours, const Body& body) {
  if (count == 0) return cudaSuccess;  // a launch of no blocks is an error
  constexpr unsigned kThreads = 256;
  const size_t groups = in_fours ? (count + 3) / 4 : count;
  const auto config = config_of(stream, blocks_for(groups, kThreads), kThreads);
  return in_fours ? cudaLaunchKernelEx(&config, for_each_kernel<4, Body>, count, body)
                  : cudaLaunchKernelEx(&config, for_each_kernel<1, Body>, count, body);
}

}  // namespace gxp
