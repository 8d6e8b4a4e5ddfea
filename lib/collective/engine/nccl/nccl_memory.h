// Memory that NCCL works on without copies through buffers of its own.
#pragma once

#include <memory>

#include "lib/collective/engine/nccl/nccl_communicator.h"
#include "lib/collective/engine/nccl/nccl_library.h"
#include "lib/device/device.h"
#include "lib/device/memory.h"

namespace gxp {

// Registered with a communicator until its end; the memory lives longer.
class NcclRegistration {
 public:
  enum class Kind : uint8_t {
    kBuffer,  // for this rank alone: ncclCommRegister()
    kWindow,  // [collective] symmetric: the other ranks register as many bytes
  };
  // kWindow may be in progress afterwards (NcclCommunicator::is_ready()).
  NcclRegistration(const NcclLibrary& library, std::shared_ptr<NcclCommunicator> comm,
                   Memory memory, Kind kind);
  NcclRegistration(const NcclRegistration&) = delete;
  NcclRegistration& operator=(const NcclRegistration&) = delete;
  ~NcclRegistration();
  [[nodiscard]] const Memory& memory() const { return memory_; }

 private:
  NcclLibrary library_;
  std::shared_ptr<NcclCommunicator> comm_;  // owners: the engine and what works with it
  Memory memory_;
  Kind kind_;
  void* handle_ = nullptr;
};

// Scratch memory of a GPU that grows: NCCL's own allocation, registered, where the version has
// that; else the device's. Counted as kCommunication.
class NcclScratch {
 public:
  NcclScratch(const NcclLibrary& library, std::shared_ptr<NcclCommunicator> comm, Device& device)
      : library_(library), comm_(std::move(comm)), device_(device) {}
  NcclScratch(const NcclScratch&) = delete;
  NcclScratch& operator=(const NcclScratch&) = delete;
  ~NcclScratch() { release(); }

  // Whether grow() replaces memory that work under way may still use.
  [[nodiscard]] bool replaces(size_t bytes) const {
    return memory_.data != nullptr && memory_.bytes < bytes;
  }
  // The first `bytes`; if the memory must grow, its content is lost. The GPU is the calling
  // thread's. Throws kDevice.
  Memory grow(size_t bytes);
  void release() noexcept;

 private:
  NcclLibrary library_;
  std::shared_ptr<NcclCommunicator> comm_;  // owners: the engine and what works with it
  Device& device_;
  Memory memory_;
  Buffer buffer_;  // of the device; empty: the memory is NCCL's
  std::unique_ptr<NcclRegistration> registration_;
};

}  // namespace gxp
