#include "lib/device/cuda_mapping.h"

#include "lib/base/bytes.h"

namespace gxp {

Fd export_descriptor(const CudaHandle& handle, std::string_view act) {
  int fd = -1;
  check_driver(cuda_driver().export_handle(&fd, handle.get(), kDescriptor, 0), act);
  return Fd(fd);
}

CUmemGenericAllocationHandle import_descriptor(const Fd& fd, std::string_view act) {
  CUmemGenericAllocationHandle handle = 0;
  // The driver takes the descriptor as a pointer.
  auto* const taken = reinterpret_cast<void*>(intptr_t{fd.get()});  // NOLINT
  check_driver(cuda_driver().import_handle(&handle, taken, kDescriptor), act);
  return handle;
}

CudaMapping::CudaMapping(const CudaHandle& memory, size_t bytes, int index) : bytes_(bytes) {
  const CudaDriver& driver = cuda_driver();
  const std::string act = fmt::format("map {} for GPU {}", format_bytes(bytes), index);
  check_driver(driver.reserve_addresses(&at_, bytes, 0, 0, 0), act);
  try {
    check_driver(driver.map(at_, bytes, 0, memory.get(), 0), act);
    is_mapped_ = true;
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, index};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check_driver(driver.set_access(at_, bytes, &access, 1), act);
  } catch (...) {
    release();
    throw;
  }
}

void CudaMapping::release() noexcept {
  if (is_mapped_) cuda_driver().unmap(at_, bytes_);
  cuda_driver().free_addresses(at_, bytes_);
}

}  // namespace gxp
