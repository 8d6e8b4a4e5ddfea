// One call per element, four at a time where the arrays are aligned: the shapes of the kernels that
// see arrays element by element.
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
cudaError_t for_each(const GpuStream& stream, size_t count, bool in_fours, const Body& body) {
  if (count == 0) return cudaSuccess;  // a launch of no blocks is an error
  constexpr unsigned kThreads = 256;
  const size_t groups = in_fours ? (count + 3) / 4 : count;
  const auto config = config_of(stream, blocks_for(stream.gpu, groups, kThreads), kThreads);
  return in_fours ? cudaLaunchKernelEx(&config, for_each_kernel<4, Body>, count, body)
                  : cudaLaunchKernelEx(&config, for_each_kernel<1, Body>, count, body);
}

// body.run<N>(row, i) for columns i .. i + N - 1 of each row. A block has a row at a time, so that
// nothing is divided.
template <int N, class Body>
__global__ void for_each_row_kernel(size_t rows, size_t columns, Body body) {
  for (size_t row = blockIdx.x; row < rows; row += gridDim.x)
    for (size_t i = size_t{threadIdx.x} * N; i < columns; i += size_t{blockDim.x} * N)
      body.template run<N>(row, i);
}

// `in_fours`: columns are a multiple of four, and all of the body's arrays lie in fours.
template <class Body>
cudaError_t for_each_row(const GpuStream& stream, size_t rows, size_t columns, bool in_fours,
                         const Body& body) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  constexpr size_t kMostThreads = 256;
  const unsigned threads = whole_warps(in_fours ? columns / 4 : columns, kMostThreads);
  const dim3 blocks = blocks_for(stream.gpu, rows * threads, threads);
  const auto config = config_of(stream, blocks, dim3(threads));
  return in_fours ? cudaLaunchKernelEx(&config, for_each_row_kernel<4, Body>, rows, columns, body)
                  : cudaLaunchKernelEx(&config, for_each_row_kernel<1, Body>, rows, columns, body);
}

// Bodies of one kind, each with its own elements, for one launch.
template <class Body>
struct Bodies {
  // Limited by a kernel's arguments, which may take 4 KiB.
  static constexpr size_t kMost = 4000 / (sizeof(Body) + sizeof(size_t) + sizeof(unsigned));
  static constexpr size_t kChunk = 16384;  // elements that a block sees

  void add(const Body& one, size_t elements) {
    bodies[count] = one;
    counts[count] = elements;
    blocks += unsigned((elements + kChunk - 1) / kChunk);
    ends[count++] = blocks;
  }

  Body bodies[kMost];
  size_t counts[kMost];
  unsigned ends[kMost];  // blocks of those up to this one
  unsigned count = 0, blocks = 0;
};

template <int N, class Body>
__global__ void for_each_of_kernel(const __grid_constant__ Bodies<Body> all) {
  unsigned which = 0;
  while (blockIdx.x >= all.ends[which]) ++which;
  const unsigned before = which == 0 ? 0 : all.ends[which - 1];
  const size_t begin = (blockIdx.x - before) * Bodies<Body>::kChunk;
  const size_t rest = all.counts[which] - begin;
  const size_t count = rest < Bodies<Body>::kChunk ? rest : Bodies<Body>::kChunk;
  const size_t in_groups = count / N * N;
  for (size_t i = threadIdx.x * N; i < in_groups; i += blockDim.x * N)
    all.bodies[which].template run<N>(begin + i);
  for (size_t i = in_groups + threadIdx.x; i < count; i += blockDim.x)
    all.bodies[which].template run<1>(begin + i);
}

// Queues them. `in_fours`: all arrays of all bodies lie in fours.
template <class Body>
cudaError_t for_each_of(cudaStream_t stream, bool in_fours, const Bodies<Body>& all) {
  if (all.blocks == 0) return cudaSuccess;
  const auto config = config_of(stream, dim3(all.blocks), dim3(256));
  return in_fours ? cudaLaunchKernelEx(&config, for_each_of_kernel<4, Body>, all)
                  : cudaLaunchKernelEx(&config, for_each_of_kernel<1, Body>, all);
}

}  // namespace gxp
