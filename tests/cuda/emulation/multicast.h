// Multicast objects of the emulated driver (cuda.h), and the memory behind their addresses. Those
// addresses themselves can be neither read nor written.
//
// An object is an anonymous file that all processes map: it says which GPUs have joined, and by
// which descriptor of which process each one's memory is found.
//   Strict  what would wait for ever aborts with the place: to bind or to map before all have
//           joined. So does an access before all have bound. What was unbound is left out, and so
//           is the memory of a process that was killed: so a sum that still needs it is wrong, and
//           who ends with an error need not wait for the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/cuda/emulation/cuda.h"

namespace gxp::emulation {

// The driver's calls about multicast objects, in the order in which gxp makes them.
enum class MulticastCall { kSupport, kGranularity, kCreate, kAdd, kExport, kImport, kBind, kMap };
// Asked at each of them, by any thread: what it returns instead of doing it, or CUDA_SUCCESS. The
// calling thread's GPU is cudaGetDevice()'s. Empty: nothing is asked. Set while nobody calls.
void set_multicast_hook(std::function<CUresult(MulticastCall)> hook);
CUresult ask_multicast_hook(MulticastCall call);

// Of an address of a mapping: the place in each GPU's memory, by the GPU's number.
std::vector<std::byte*> places_behind(const std::byte* at);

// Not a GPU's 2 MiB, so that tests need not be large.
inline constexpr size_t kPageBytes = 4096;

// A handle of the driver is the descriptor of a file, plus 1, since 0 is none; and above it, of
// memory that was created here, its GPU.
inline int descriptor(CUmemGenericAllocationHandle handle) { return int(uint32_t(handle)) - 1; }
inline int gpu_of(CUmemGenericAllocationHandle handle) { return int(handle >> 32); }
inline CUresult handle_of(int fd, CUmemGenericAllocationHandle* handle, int gpu = 0) {
  if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = CUmemGenericAllocationHandle(gpu) << 32 | CUmemGenericAllocationHandle(fd + 1);
  return CUDA_SUCCESS;
}

// For the driver's other functions.
bool is_multicast(int fd);
CUresult map_multicast(CUdeviceptr at, size_t size, int fd);
bool unmap_multicast(CUdeviceptr at);  // false: nothing of the kind is mapped there
bool allow_multicast(CUdeviceptr at);  // likewise

}  // namespace gxp::emulation
