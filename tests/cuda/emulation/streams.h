// The emulated GPU's streams and memory, for what else is emulated of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "tests/cuda/emulation/cuda_runtime_api.h"

namespace gxp::emulation {

inline constexpr size_t kDeviceBytes = size_t{8} << 30;

// While this exists, the GPU has no more memory than what is taken of it and `bytes`.
struct LittleMemory {
  explicit LittleMemory(size_t bytes);
  ~LittleMemory();
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;
};

// Queues `work`; runs it at once on the default stream, keeps it where the stream is captured.
[[nodiscard]] cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

// The same for work that waits for others: it is tried until it returns true. Not on the default
// stream, nor where the stream is captured.
[[nodiscard]] cudaError_t enqueue_until(cudaStream_t stream, std::function<bool()> attempt);

// For a kernel that waits for what other threads do: they run meanwhile.
void pass_turn(std::chrono::nanoseconds time);

// Adds to the time that events report: the CPU time of this process and all that was added. So on a
// busy machine, too, what is meant to be slow is slow, and nothing else.
void spend(std::chrono::nanoseconds time);

// Called before work is queued, and before some of it runs. Set while no other thread uses the GPU.
void set_work_hook(std::function<void()> hook);

// Memory of the GPU that cudaMalloc() has not made. False: there is not as much.
bool fits_device_memory(size_t bytes);
bool add_device_memory(const std::byte* at, size_t bytes);
void remove_device_memory(const std::byte* at);

}  // namespace gxp::emulation
