// Memory of a GPU that peers map (device_sharing.h), by the driver's virtual memory management.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.h"
#include "lib/device/cuda_driver.h"
#include "lib/device/device_sharing.h"

namespace gxp {

// Memory from the driver's virtual memory management, and the addresses at which a GPU accesses it.

// A handle, which is released with this; what it names lives as long as some handle or mapping.
class CudaHandle {
 public:
  explicit CudaHandle(CUmemGenericAllocationHandle handle) : handle_(handle) {}
  CudaHandle(const CudaHandle&) = delete;
  CudaHandle& operator=(const CudaHandle&) = delete;
  ~CudaHandle() { cuda_driver().release(handle_); }
  [[nodiscard]] CUmemGenericAllocationHandle get() const { return handle_; }

 private:
  CUmemGenericAllocationHandle handle_;
};

// How such memory travels: as file descriptors.
inline constexpr CUmemAllocationHandleType kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
// Throw kDevice with `act` in front.
Fd export_descriptor(const CudaHandle& handle, std::string_view act);
CUmemGenericAllocationHandle import_descriptor(const Fd& fd, std::string_view act);

// Addresses of this process at which GPU `index` reads and writes all `bytes` behind a handle.
// Throws kDevice.
class CudaMapping {
 public:
  CudaMapping(const CudaHandle& memory, size_t bytes, int index);
  CudaMapping(const CudaMapping&) = delete;
  CudaMapping& operator=(const CudaMapping&) = delete;
  ~CudaMapping() { release(); }
  [[nodiscard]] std::byte* data() const {
    return reinterpret_cast<std::byte*>(at_);  // the driver's
  }

 private:
  void release() noexcept;
  size_t bytes_;
  CUdeviceptr at_ = 0;
  bool is_mapped_ = false;
};

class CudaSharing final : public DeviceSharing {
 public:
  // For GPU `index`. Only asks the driver.
  explicit CudaSharing(int index);

  [[nodiscard]] Support support() const override;
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::vector<std::string> visible() const override;
  [[nodiscard]] Support reaches(std::string_view identity) const override;
  [[nodiscard]] AllocationOffset find(ConstMemory memory) const override;
  [[nodiscard]] bool is_live(uint64_t allocation) const override;
  [[nodiscard]] SharedAllocation share(uint64_t allocation) const override;

  // Not zeroed. Nothing if the driver cannot make memory that is shared; support() then has the
  // reason. Without data if there is not enough memory.
  [[nodiscard]] std::optional<Memory> allocate(size_t bytes);
  // False if the memory is not from here. Nothing on the GPU uses it.
  bool free(std::byte* data) noexcept;

 protected:
  [[nodiscard]] Memory map(const SharedAllocation& theirs) override;
  void unmap(Memory memory) noexcept override;

 private:
  struct Allocation {
    Allocation(CUmemGenericAllocationHandle created, size_t bytes_in, int index)
        : handle(created), bytes(bytes_in), mapping(handle, bytes_in, index) {}
    CudaHandle handle;
    size_t bytes;
    CudaMapping mapping;
    uint64_t number = 0;
  };
  using Allocations = std::map<const std::byte*, std::unique_ptr<Allocation>>;

  [[nodiscard]] const Allocation* find_number(uint64_t allocation) const;
  [[nodiscard]] const Allocation& live(uint64_t allocation) const;

  const int index_;
  std::string identity_;
  CUmemAllocationProp properties_{};
  size_t page_bytes_ = 1;
  mutable std::mutex mutex_;                  // guards all below
  mutable std::vector<std::string> visible_;  // from the first call on: to ask takes a millisecond
  Support support_;
  Allocations own_;     // by address
  Allocations theirs_;  // likewise
  uint64_t allocated_ = 0;
};

}  // namespace gxp
