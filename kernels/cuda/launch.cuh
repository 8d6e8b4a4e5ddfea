// Launch configurations.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/gpu_stream.h"

namespace gxp {

// Threads of a multiprocessor of the GPU that is compiled for, for __launch_bounds__ (CUDA C++
// Programming Guide, "Compute Capabilities").
#if defined(__CUDA_ARCH__) && \
    ((__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1200)
inline constexpr unsigned kResidentThreads = 1536;
#else
inline constexpr unsigned kResidentThreads = 2048;
#endif

inline cudaLaunchConfig_t config_of(cudaStream_t stream, const dim3& blocks, const dim3& threads,
                                    size_t shared_bytes = 0) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return config;
}

// The blocks of a grid-stride kernel over `count`: more than the multiprocessors hold at once add
// nothing.
inline dim3 blocks_for(const GpuSize& gpu, size_t count, unsigned threads) {
  const size_t resident = gpu.multiprocessors * (gpu.threads / threads);
  return {static_cast<unsigned>(std::clamp((count + threads - 1) / threads, size_t{1}, resident))};
}

// Threads of a block that has `count` pieces of work: whole warps, at most `most`.
inline unsigned whole_warps(size_t count, size_t most) {
  constexpr size_t kLanes = 32;
  return static_cast<unsigned>(std::clamp((count + kLanes - 1) / kLanes * kLanes, kLanes, most));
}

}  // namespace gxp
