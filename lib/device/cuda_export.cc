#include "lib/device/cuda_export.h"

#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_driver.h"

namespace gxp {

Support cuda_export_support(int index) {
  check_cuda(cudaSetDevice(index), fmt::format("select GPU {}", index));
  const CudaDriver& driver = cuda_driver();
  if (driver.attribute == nullptr || driver.export_range == nullptr)
    return {false, "its driver is older than CUDA 11.7"};
  // The runtime numbers devices as the driver does.
  int supported = 0;
  const CUresult result =
      driver.attribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, index);
  if (result != CUDA_SUCCESS || supported == 0)
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
  check_driver(
      cuda_driver().export_range(&file, begin, end - begin, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
      act);
  return {Fd(file), address - begin};
}

}  // namespace gxp
