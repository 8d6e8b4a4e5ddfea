// CUDA's language for kernels, as C++ that runs on the CPU: a grid is a loop over its blocks, the
// threads of a block are fibers that are switched at barriers and shuffles alone. So a kernel's
// launch geometry, indexing and barriers are what is tested; its speed is not.
//
//   Order    a warp runs until it waits for others; of warps, and of the lanes between two places
//            where a warp meets, set_thread_order() turns the order round. A kernel that lacks a
//            barrier gives other results then. (Not one that lacks a __syncwarp() next to a shuffle
//            or a vote, which are as good as one here.)
//   Errors   threads that wait for each other for ever, or a shuffle that reads a lane that does
//            not take part, abort with the place.
//   Shared   arrays keep what the block before left in them, as a GPU's do.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "tests/cuda/emulation/cuda_runtime_api.h"
#include "tests/cuda/emulation/streams.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  constexpr dim3(unsigned columns = 1, unsigned rows = 1, unsigned layers = 1)  // NOLINT: CUDA's
      : x(columns), y(rows), z(layers) {}
  unsigned x, y, z;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline thread_local uint3 threadIdx;
inline thread_local uint3 blockIdx;
inline thread_local dim3 blockDim;
inline thread_local dim3 gridDim;
inline constexpr int warpSize = 32;

namespace gxp::emulation {

enum class ThreadOrder : uint8_t { kUp, kDown };
// The order holds for all kernels that run from now on.
void set_thread_order(ThreadOrder order);

struct Grid {
  dim3 blocks, threads;
  size_t shared_bytes;
};
// Calls `thread` once for each thread of the grid.
void run_grid(const Grid& grid, const std::function<void()>& thread);

// What a kernel may have of it: 48 KiB unless it has asked for more.
size_t allowed_shared_bytes(const void* kernel);
void allow_shared_bytes(const void* kernel, size_t bytes);

// Aborts, with the place.
[[noreturn]] void give_up(const char* what);

std::byte* dynamic_shared_memory();
void block_barrier();
void warp_barrier(unsigned mask);
// What each lane of the warp gave; all 32 call it together. It is there until the lane that reads
// it meets the others again.
using Given = std::array<uint64_t, 3>;
const std::array<Given, 32>& show(const Given& given);
// What lane `from` of the warp gave; all lanes of `mask` call it together.
uint64_t exchange(unsigned mask, uint64_t value, unsigned from);
unsigned ballot(unsigned mask, bool vote);
inline unsigned lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

template <class T>
T shuffle(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(mask, bits, from);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace gxp::emulation

inline void __syncthreads() { gxp::emulation::block_barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { gxp::emulation::warp_barrier(mask); }
template <class T>
T __shfl_sync(unsigned mask, T value, int from) {
  return gxp::emulation::shuffle(mask, value, unsigned(from) % 32);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return gxp::emulation::shuffle(mask, value, gxp::emulation::lane() ^ unsigned(bits));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance) {
  const unsigned from = gxp::emulation::lane() + distance;
  return gxp::emulation::shuffle(mask, value, from < 32 ? from : gxp::emulation::lane());
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance) {
  const unsigned at = gxp::emulation::lane();
  return gxp::emulation::shuffle(mask, value, at >= distance ? at - distance : at);
}
inline unsigned __ballot_sync(unsigned mask, bool vote) {
  return gxp::emulation::ballot(mask, vote);
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
// One thread runs at a time.
template <class T>
T atomicAdd(T* at, T value) {
  const T before = *at;
  *at += value;
  return before;
}
template <class T>
T atomicMax(T* at, T value) {
  const T before = *at;
  *at = before > value ? before : value;
  return before;
}
inline void __threadfence() {}
// Rounded by itself, whatever is done with it.
inline float __fmul_rn(float a, float b) {
  const volatile float product = a * b;
  return product;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
template <class T>
T __ldg(const T* at) {
  return *at;
}

struct cudaLaunchAttribute {};
struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

// A GPU's limits: 1024 threads a block; of shared memory 227 KiB, for kernels that asked for it
// (sm_90).
template <class... Expected, class... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...),
                               Given&&... given) {
  const gxp::emulation::Grid grid = {config->gridDim, config->blockDim, config->dynamicSmemBytes};
  const size_t threads = size_t{grid.threads.x} * grid.threads.y * grid.threads.z;
  const bool is_empty = grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0;
  if (threads == 0 || threads > 1024 || is_empty || grid.blocks.y > 65535 ||
      grid.blocks.z > 65535 ||
      grid.shared_bytes >
          gxp::emulation::allowed_shared_bytes(reinterpret_cast<const void*>(kernel)))
    return cudaErrorInvalidValue;
  return gxp::emulation::enqueue(
      config->stream,
      [grid, kernel,
       arguments = std::tuple<std::decay_t<Expected>...>(std::forward<Given>(given)...)] {
        gxp::emulation::run_grid(grid, [&] { std::apply(kernel, arguments); });
      });
}

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > 227 * 1024)
    return cudaErrorInvalidValue;
  gxp::emulation::allow_shared_bytes(reinterpret_cast<const void*>(kernel), size_t(value));
  return cudaSuccess;
}
