#include "lib/device/cuda_sharing.h"

#include <utility>

#include "lib/base/bytes.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

// As nvidia-smi -L has it. By the driver's function: of a MIG slice it tells the slice's own, while
// NVIDIA does not say which one cudaDeviceProp has.
std::string identity_of(int index) {
  CUuuid uuid{};
  if (cuda_driver().uuid == nullptr)
    fail(ErrorKind::kUnavailable, "open GPU {}: the NVIDIA driver is older than CUDA 11.4", index);
  check_driver(cuda_driver().uuid(&uuid, index), fmt::format("query GPU {}'s UUID", index));
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uint8_t(uuid.bytes[i]));
  }
  return text;
}

int attribute(CUdevice_attribute which, int index) {
  int value = 0;
  check_driver(cuda_driver().attribute(&value, which, index), fmt::format("ask GPU {}", index));
  return value;
}

Support support_of(int index) {
  if (const Support& found = cuda_driver().support; !found) return found;
  if (attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, index) == 0)
    return {false, fmt::format("GPU {} has no virtual memory management", index)};
  if (attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, index) == 0)
    return {false, fmt::format("GPU {}'s memory cannot be exported as file descriptors", index)};
  return {};
}

}  // namespace

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

CudaSharing::CudaSharing(int index)
    : index_(index), identity_(identity_of(index)), support_(support_of(index)) {
  if (!support_) return;
  properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties_.requestedHandleTypes = kDescriptor;
  properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, index};
  // So that a network adapter can reach it, too.
  properties_.allocFlags.gpuDirectRDMACapable =
      attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, index) != 0 ? 1 : 0;
  check_driver(
      cuda_driver().granularity(&page_bytes_, &properties_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
      fmt::format("query GPU {}'s page size", index));
}

Support CudaSharing::support() const {
  const std::lock_guard lock(mutex_);
  return support_;
}

std::vector<std::string> CudaSharing::visible() const {
  const std::lock_guard lock(mutex_);
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "count the GPUs");
  for (int gpu = int(visible_.size()); gpu < count; ++gpu) visible_.push_back(identity_of(gpu));
  return visible_;
}

// One that this process does not see may be reached: trying tells.
Support CudaSharing::reaches(std::string_view identity) const {
  const std::vector<std::string> gpus = visible();
  for (int peer = 0; peer < int(gpus.size()); ++peer) {
    if (peer == index_ || gpus[size_t(peer)] != identity) continue;
    int can = 0;
    check_cuda(cudaDeviceCanAccessPeer(&can, index_, peer),
               fmt::format("query whether GPU {} reaches GPU {}", index_, peer));
    if (can == 0)
      return {false, fmt::format("GPU {} has no peer access to GPU {} (gxp topo shows P2P)", index_,
                                 peer)};
  }
  return {};
}

std::optional<Memory> CudaSharing::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!support_) return std::nullopt;
  const size_t whole = round_up(bytes, page_bytes_);
  const std::string act = fmt::format("allocate {} on GPU {}", format_bytes(whole), index_);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = cuda_driver().create(&handle, whole, &properties_, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return Memory{nullptr, bytes, MemorySpace::kCuda};
  if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED) {
    support_ = {false, fmt::format("the NVIDIA driver cannot export memory of GPU {} as a file "
                                   "descriptor here (error {})",
                                   index_, int(result))};
    return std::nullopt;
  }
  check_driver(result, act);
  auto made = std::make_unique<Allocation>(handle, whole, index_);
  made->number = ++allocated_;
  std::byte* const data = made->mapping.data();
  own_.emplace(data, std::move(made));
  return Memory{data, bytes, MemorySpace::kCuda};
}

bool CudaSharing::free(std::byte* data) noexcept {
  const std::lock_guard lock(mutex_);
  return own_.erase(data) > 0;
}

AllocationOffset CudaSharing::find(ConstMemory memory) const {
  const std::lock_guard lock(mutex_);
  auto next = own_.upper_bound(memory.data);
  if (next == own_.begin()) return {};
  const auto& [begin, allocation] = *--next;
  const auto offset = size_t(memory.data - begin);
  if (offset > allocation->bytes || memory.bytes > allocation->bytes - offset) return {};
  return {allocation->number, offset};
}

const CudaSharing::Allocation* CudaSharing::find_number(uint64_t allocation) const {
  for (const auto& [begin, known] : own_) {
    if (known->number == allocation) return known.get();
  }
  return nullptr;
}

const CudaSharing::Allocation& CudaSharing::live(uint64_t allocation) const {
  const Allocation* const known = find_number(allocation);
  GXP_ASSERT(known != nullptr);
  return *known;
}

bool CudaSharing::is_live(uint64_t allocation) const {
  const std::lock_guard lock(mutex_);
  return find_number(allocation) != nullptr;
}

SharedAllocation CudaSharing::share(uint64_t allocation) const {
  const std::lock_guard lock(mutex_);
  const Allocation& known = live(allocation);
  return {export_descriptor(known.handle,
                            fmt::format("share {} of GPU {}", format_bytes(known.bytes), index_)),
          known.bytes};
}

Memory CudaSharing::map(const SharedAllocation& theirs) {
  const std::lock_guard lock(mutex_);
  const std::string act =
      fmt::format("map {} of a peer for GPU {}", format_bytes(theirs.bytes), index_);
  check_cuda(cudaSetDevice(index_), act);
  auto made = std::make_unique<Allocation>(import_descriptor(theirs.fd, act), theirs.bytes, index_);
  std::byte* const data = made->mapping.data();
  theirs_.emplace(data, std::move(made));
  return {data, theirs.bytes, MemorySpace::kCuda};
}

void CudaSharing::unmap(Memory memory) noexcept {
  const std::lock_guard lock(mutex_);
  cudaSetDevice(index_);
  theirs_.erase(memory.data);
}

}  // namespace gxp
