#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "tests/cuda/emulation/cuda.h"
#include "tests/cuda/emulation/cuda_runtime_api.h"
#include "tests/cuda/emulation/streams.h"

namespace {

// Not a GPU's 2 MiB, so that tests need not be large.
constexpr size_t kPageBytes = 4096;

// A handle of the driver is the descriptor of a file, plus 1, since 0 is none.
int descriptor(CUmemGenericAllocationHandle handle) { return int(handle) - 1; }
CUresult handle_of(int fd, CUmemGenericAllocationHandle* handle) {
  if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = CUmemGenericAllocationHandle(fd + 1);
  return CUDA_SUCCESS;
}

std::atomic<CUresult> sharing = CUDA_SUCCESS;

void* pointer(CUdeviceptr at) {
  return reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr): that is what it is
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

const std::array<std::pair<std::string_view, void*>, 14> kFunctions = {{
    {"cuGetErrorString", address(cuGetErrorString)},
    {"cuDeviceGetUuid", address(cuDeviceGetUuid)},
    {"cuDeviceGetAttribute", address(cuDeviceGetAttribute)},
    {"cuMemGetAllocationGranularity", address(cuMemGetAllocationGranularity)},
    {"cuMemCreate", address(cuMemCreate)},
    {"cuMemRelease", address(cuMemRelease)},
    {"cuMemAddressReserve", address(cuMemAddressReserve)},
    {"cuMemAddressFree", address(cuMemAddressFree)},
    {"cuMemMap", address(cuMemMap)},
    {"cuMemUnmap", address(cuMemUnmap)},
    {"cuMemSetAccess", address(cuMemSetAccess)},
    {"cuMemExportToShareableHandle", address(cuMemExportToShareableHandle)},
    {"cuMemImportFromShareableHandle", address(cuMemImportFromShareableHandle)},
    {"cuMemGetHandleForAddressRange", address(cuMemGetHandleForAddressRange)},
}};

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function,
                                             unsigned /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* state) {
  const auto* const found = std::ranges::find(kFunctions, std::string_view(name),
                                              &std::pair<std::string_view, void*>::first);
  *state =
      found == kFunctions.end() ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  *function = found == kFunctions.end() ? nullptr : found->second;
  return cudaSuccess;
}

void set_emulated_sharing(CUresult result) { sharing = result; }

CUresult cuGetErrorString(CUresult /*error*/, const char** text) {
  *text = "an error of the emulated driver";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  *uuid = {};
  uuid->bytes[15] = char(emulated_gpu_on_host(device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute /*attribute*/, CUdevice /*device*/) {
  *value = 1;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* /*prop*/,
                                       CUmemAllocationGranularity_flags /*option*/) {
  *granularity = kPageBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* /*prop*/, unsigned long long /*flags*/) {
  if (sharing != CUDA_SUCCESS) return sharing;
  if (size % kPageBytes != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!gxp::emulation::fits_device_memory(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  const int fd = memfd_create("emulated GPU", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, off_t(size)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  return handle_of(fd, handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return ::close(descriptor(handle)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAddressReserve(CUdeviceptr* at, size_t size, size_t /*alignment*/,
                             CUdeviceptr /*address*/, unsigned long long /*flags*/) {
  void* const found =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *at = CUdeviceptr(found);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t size) {
  return munmap(pointer(at), size) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long /*flags*/) {
  struct stat status {};
  const bool fits = fstat(descriptor(handle), &status) == 0 && size <= size_t(status.st_size);
  if (!fits || offset != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!gxp::emulation::add_device_memory(static_cast<std::byte*>(pointer(at)), size))
    return CUDA_ERROR_OUT_OF_MEMORY;
  void* const found =
      mmap(pointer(at), size, PROT_NONE, MAP_SHARED | MAP_FIXED, descriptor(handle), 0);
  return found == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t size) {
  gxp::emulation::remove_device_memory(static_cast<std::byte*>(pointer(at)));
  void* const found = mmap(pointer(at), size, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return found == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const CUmemAccessDesc* /*access*/,
                        size_t /*count*/) {
  return mprotect(pointer(at), size, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType /*type*/,
                                      unsigned long long /*flags*/) {
  const int fd = fcntl(descriptor(handle), F_DUPFD_CLOEXEC, 0);
  std::memcpy(shareable, &fd, sizeof fd);
  return fd < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType /*type*/) {
  return handle_of(fcntl(int(intptr_t(shareable)), F_DUPFD_CLOEXEC, 0), handle);
}

// A file of that size, without the bytes.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr at, size_t size,
                                       CUmemRangeHandleType /*type*/, unsigned long long flags) {
  if (flags != 0 || at % kPageBytes != 0 || size % kPageBytes != 0) return CUDA_ERROR_INVALID_VALUE;
  const int fd = memfd_create("emulated DMA-BUF", MFD_CLOEXEC);
  std::memcpy(handle, &fd, sizeof fd);
  return ftruncate(fd, off_t(size)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
