// Memory from the driver's virtual memory management, and the addresses at which a GPU accesses it.
// Used by cuda_sharing.h only.
#pragma once

#include <cstddef>

#include <string_view>

#include "lib/base/fd.h"
#include "lib/device/cuda_driver.h"

namespace gxp {

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

}  // namespace gxp
