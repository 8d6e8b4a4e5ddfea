// Memory of a device that other ranks of its host map and then read and write as their own.
//
// An allocation travels as a file descriptor, which its owner passes over an authenticated local
// socket (transport/arena/shared_arena.h): no other process can name it, and it is freed
// with the last process that maps it. On a GPU it is one of the driver's virtual memory management
// (CUDA Driver API, "Virtual Memory Management": cuMemCreate, cuMemExportToShareableHandle), which
// is also what DMA-BUF exports take. There is no second way by cudaIpcMemHandle: every driver for
// gxp's CUDA runtime supports the first one, and any process that learns the 64 bytes of an IPC
// handle can open it. Ranks of one process map by the descriptor as well.
//
// What can be in the way, each with its reason in support() or reaches(): the driver or the GPU
// lacks it (some virtual GPUs), or no peer access leads from one GPU to the other (`gxp topo` shows
// it as P2P). Containers need a common network namespace for the socket, but neither a common IPC
// nor process namespace; GPUs that CUDA_VISIBLE_DEVICES hides from this process can be reached all
// the same, so that is found out by trying.
//   Threads  any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/device/memory.h"

namespace gxp {

// The position of memory in an allocation that peers can map.
struct AllocationOffset {
  uint64_t allocation = 0;  // its number on the device, from 1 on, never used again; 0: in none
  uint64_t offset = 0;
};

// The handle by which a peer maps an allocation.
struct SharedAllocation {
  Fd fd;
  size_t bytes = 0;  // whole pages of the device
};

class DeviceSharing {
 public:
  virtual ~DeviceSharing() = default;
  // Whether the memory of this device can be mapped by peers at all.
  [[nodiscard]] virtual Support support() const = 0;
  // The device's UUID as its driver has it, which no other device of any host has, nor another MIG
  // slice of the same GPU: "GPU-5cb2d9a4-...". At most 63 bytes.
  [[nodiscard]] virtual std::string identity() const = 0;
  // The identities of all devices that this process sees, this one included, in the driver's order.
  [[nodiscard]] virtual std::vector<std::string> visible() const = 0;
  // Whether this device can reach the memory of the one with that identity, as far as that is
  // known without trying.
  [[nodiscard]] virtual Support reaches(std::string_view identity) const = 0;

  // The position of memory from Device::allocate_shareable(); no allocation if it is not entirely
  // in one.
  [[nodiscard]] virtual AllocationOffset find(ConstMemory memory) const = 0;
  // Whether that allocation has not been freed.
  [[nodiscard]] virtual bool is_live(uint64_t allocation) const = 0;
  // For a live allocation. Throws kDevice.
  [[nodiscard]] virtual SharedAllocation share(uint64_t allocation) const = 0;

 protected:
  friend class PeerMemory;
  // Memory that a peer has shared. Throws kDevice.
  [[nodiscard]] virtual Memory map(const SharedAllocation& theirs) = 0;
  virtual void unmap(Memory memory) noexcept = 0;
};

// A peer's allocation, mapped here until its end; `sharing` outlives it. It keeps the memory alive
// if the peer frees it. Cost: some 100 us.
class PeerMemory {
 public:
  PeerMemory() = default;
  PeerMemory(DeviceSharing& sharing, const SharedAllocation& theirs)
      : sharing_(&sharing), memory_(sharing.map(theirs)) {}
  PeerMemory(PeerMemory&& other) noexcept
      : sharing_(std::exchange(other.sharing_, nullptr)), memory_(other.memory_) {}
  PeerMemory& operator=(PeerMemory&& other) noexcept {
    std::swap(sharing_, other.sharing_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~PeerMemory() {
    if (sharing_ != nullptr) sharing_->unmap(memory_);
  }
  [[nodiscard]] Memory memory() const { return memory_; }

 private:
  DeviceSharing* sharing_ = nullptr;
  Memory memory_;
};

}  // namespace gxp
