// One call per element: the shape of every kernel that sees an array element by element.
#pragma once

#include <algorithm>
#include <cstddef>

namespace gxp {

// element(i) for every i < count. Grid-stride, so any launch shape is correct.
template <class Element>
__global__ void for_each_kernel(size_t count, Element element) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    element(i);
  }
}

// Queues element(i) for every i < count on `stream`. `element` is copied to the GPU.
template <class Element>
cudaError_t for_each(cudaStream_t stream, size_t count, const Element& element) {
  if (count == 0) return cudaSuccess;  // a launch of no blocks is an error
  constexpr size_t kThreads = 256;
  // More blocks add nothing: the 132 multiprocessors of an H100 hold 8 such blocks (2048 threads)
  // each.
  constexpr size_t kMaxBlocks = 8 * 132;
  const size_t blocks = std::min((count + kThreads - 1) / kThreads, kMaxBlocks);
  for_each_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(count, element);
  return cudaGetLastError();
}

}  // namespace gxp
