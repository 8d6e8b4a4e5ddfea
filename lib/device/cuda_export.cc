#include "lib/device/cuda_export.h"

#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

// From cuda.h, which a build without the driver's library should not need.
using GetAttribute = int(int* value, int attribute, int device);
using GetHandle = int(void* handle, unsigned long long address, size_t bytes, int type,
                      unsigned long long flags);
constexpr int kDmaBufSupported = 124;  // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
constexpr int kDmaBufFile = 1;         // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD

// Null: the driver has none.
template <class Function>
Function* driver_function(const char* name) {
  constexpr unsigned kSince = 11070;  // the first version that has all of them
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &function, kSince, cudaEnableDefault, &found);
#else
  const cudaError_t result = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (result == cudaSuccess && found == cudaDriverEntryPointSuccess)
    return reinterpret_cast<Function*>(function);
  cudaGetLastError();  // an expected answer, not an error of a later call
  return nullptr;
}

}  // namespace

Support cuda_export_support(int index) {
  check_cuda(cudaSetDevice(index), fmt::format("select GPU {}", index));
  auto* const get_attribute = driver_function<GetAttribute>("cuDeviceGetAttribute");
  if (get_attribute == nullptr ||
      driver_function<GetHandle>("cuMemGetHandleForAddressRange") == nullptr)
    return {false, "its driver is older than CUDA 11.7"};
  // The runtime numbers devices as the driver does.
  int supported = 0;
  if (get_attribute(&supported, kDmaBufSupported, index) != 0 || supported == 0)
    return {false, "its driver exports none of its memory (is it the open one?)"};
  return {};
}

DmaBuf export_cuda_memory(int index, ConstMemory memory) {
  const std::string act =
      fmt::format("export {} of GPU {} as DMA-BUF", format_bytes(memory.bytes), index);
  if (const Support support = cuda_export_support(index); !support)
    fail(ErrorKind::kUnavailable, "{}: {}", act, support.reason);
  // Whole pages alone: those of the host.
  const auto page = uint64_t(::sysconf(_SC_PAGESIZE));
  const uint64_t address = reinterpret_cast<uintptr_t>(memory.data);
  const uint64_t begin = address / page * page;
  const uint64_t end = round_up(address + memory.bytes, page);
  int file = -1;
  const int result = driver_function<GetHandle>("cuMemGetHandleForAddressRange")(
      &file, begin, end - begin, kDmaBufFile, 0);
  if (result != 0) fail(ErrorKind::kDevice, "{}: CUDA's driver error {}", act, result);
  return {Fd(file), address - begin};
}

}  // namespace gxp
