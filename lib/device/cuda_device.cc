#include "lib/device/cuda_device.h"

#include <cuda_profiler_api.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_sharing.h"
#include "lib/device/cuda_stream.h"
#include "lib/device/cuda_wait.h"
#include "lib/device/device.h"

namespace gxp {
namespace {

// Memory of GPUs as files (DMA-BUF), which RDMA devices map. CUDA's runtime has no such function, so
// the driver's is asked for.

// Whether GPU `index` and its driver export memory; if not, why.
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

// Throws kUnavailable as that says; kDevice: the driver refuses.
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

// The first with bf16 and asynchronous copies to shared memory (A100).
constexpr int kLeastMajor = 8;

std::string version_text(int version) {  // 13000 is 13.0
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index), sharing_(index) {
    check_cuda(cudaGetDeviceProperties(&properties_, index), fmt::format("query GPU {}", index));
    if (properties_.major < kLeastMajor)
      fail(
          ErrorKind::kUnavailable,
          "open GPU {}: {} has compute capability {}.{}, gxp's kernels need {}.0; use another with "
          "CUDA_VISIBLE_DEVICES, or train.device = \"cpu\"",
          index, properties_.name, properties_.major, properties_.minor, kLeastMajor);
  }

  [[nodiscard]] std::string description() const override {
    return fmt::format("cuda:{}, {}, {}, sm_{}{}", index_, properties_.name,
                       format_bytes(properties_.totalGlobalMem), properties_.major,
                       properties_.minor);
  }
  [[nodiscard]] std::string bus_id() const override {
    std::array<char, 32> text{};
    check_cuda(cudaDeviceGetPCIBusId(text.data(), int(text.size()), index_),
               fmt::format("query the location of GPU {}", index_));
    return text.data();
  }
  [[nodiscard]] uint64_t free_bytes() const override {
    size_t free = 0;
    size_t total = 0;
    check_cuda(cudaSetDevice(index_), fmt::format("select GPU {}", index_));
    check_cuda(cudaMemGetInfo(&free, &total), fmt::format("query GPU {}'s memory", index_));
    return free;
  }
  [[nodiscard]] std::unique_ptr<Stream> make_stream(std::string_view name) override {
    return make_cuda_stream(index_, name);
  }
  [[nodiscard]] std::unique_ptr<Stream> make_urgent_stream(std::string_view name) override {
    return make_cuda_stream(index_, name, StreamPriority::kUrgent);
  }
  [[nodiscard]] std::unique_ptr<Event> make_event() override { return make_cuda_event(index_); }
  [[nodiscard]] DeviceSharing* sharing() override { return &sharing_; }
  [[nodiscard]] MemorySpace space() const override { return MemorySpace::kCuda; }

  [[nodiscard]] Support exports_memory() const override { return cuda_export_support(index_); }
  [[nodiscard]] DmaBuf export_memory(ConstMemory memory) override {
    return export_cuda_memory(index_, memory);
  }

  void set_profiled(bool profiled) override {
    const std::string act =
        profiled ? "start the profiler's capture" : "stop the profiler's capture";
    check_cuda(cudaSetDevice(index_), act);
    check_cuda(profiled ? cudaProfilerStart() : cudaProfilerStop(), act);
  }

  void copy(Memory to, ConstMemory from) override {
    GXP_ASSERT(to.bytes == from.bytes);
    if (to.bytes == 0) return;
    const std::string act =
        fmt::format("copy {} to or from GPU {}", format_bytes(to.bytes), index_);
    check_cuda(cudaSetDevice(index_), act);
    check_cuda(cudaMemcpy(to.data, from.data, to.bytes, cudaMemcpyDefault), act);
    check_cuda(wait_for_gpu(nullptr, Deadline::after(kComputeTimeout), act), act);
  }

 protected:
  Memory allocate_raw(size_t bytes) override {
    if (bytes == 0) return {nullptr, 0, MemorySpace::kCuda};
    const std::string act = fmt::format("allocate {} on GPU {}", format_bytes(bytes), index_);
    check_cuda(cudaSetDevice(index_), act);
    void* data = nullptr;
    const cudaError_t result = cudaMalloc(&data, bytes);
    if (result == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // forget it: this error leaves the GPU as it was
      return {nullptr, bytes, MemorySpace::kCuda};
    }
    check_cuda(result, act);
    return zeroed({static_cast<std::byte*>(data), bytes, MemorySpace::kCuda}, act);
  }

  Memory allocate_shareable_raw(size_t bytes) override {
    if (bytes == 0) return {nullptr, 0, MemorySpace::kCuda};
    const std::string act = fmt::format("allocate {} on GPU {}", format_bytes(bytes), index_);
    check_cuda(cudaSetDevice(index_), act);
    const std::optional<Memory> made = sharing_.allocate(bytes);
    if (!made) return allocate_raw(bytes);
    return made->data == nullptr ? *made : zeroed(*made, act);
  }

  // Pinned: pages that the GPU accesses itself.
  Memory allocate_host_raw(size_t bytes) override {
    if (bytes == 0) return {};
    const std::string act = fmt::format("pin {} of host memory", format_bytes(bytes));
    check_cuda(cudaSetDevice(index_), act);
    void* data = nullptr;
    const cudaError_t result = cudaHostAlloc(&data, bytes, cudaHostAllocDefault);
    if (result == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // forget it
      return {nullptr, bytes, MemorySpace::kHost};
    }
    check_cuda(result, act);
    std::memset(data, 0, bytes);
    return {static_cast<std::byte*>(data), bytes, MemorySpace::kHost};
  }

  // cudaFree() waits for what uses the memory; to unmap it does not.
  void free_raw(Memory memory) noexcept override {
    cudaSetDevice(index_);
    if (memory.space == MemorySpace::kHost) {
      cudaFreeHost(memory.data);
    } else if (memory.data != nullptr && sharing_.find(memory).allocation != 0) {
      cudaDeviceSynchronize();  // ends: kernels that wait for peers have deadlines
      sharing_.free(memory.data);
    } else {
      cudaFree(memory.data);
    }
  }

 private:
  // Gives the memory back if that fails.
  Memory zeroed(Memory memory, const std::string& act) {
    try {
      check_cuda(cudaMemset(memory.data, 0, memory.bytes), act);
      // Streams of make_cuda_stream() do not wait for the default one, which cudaMemset() uses.
      check_cuda(wait_for_gpu(nullptr, Deadline::after(kComputeTimeout), act), act);
    } catch (...) {
      free_raw(memory);
      throw;
    }
    return memory;
  }

  int index_;
  CudaSharing sharing_;
  cudaDeviceProp properties_{};
};

}  // namespace

void check_cuda(cudaError_t result, std::string_view act) {
  if (result == cudaSuccess) return;
  fail(ErrorKind::kDevice, "{}: {} ({})", act, cudaGetErrorString(result),
       cudaGetErrorName(result));
}

Support cuda_support() {
  int driver = 0;
  int runtime = 0;
  int count = 0;
  check_cuda(cudaRuntimeGetVersion(&runtime), "query the CUDA runtime's version");
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return {false, "no NVIDIA driver is installed here (libcuda.so.1 was not found)"};
  }
  const cudaError_t result = cudaGetDeviceCount(&count);
  cudaGetLastError();  // an expected answer, not an error of a later call
  if (result == cudaErrorInsufficientDriver) {
    return {false, fmt::format("the NVIDIA driver is for CUDA {}, gxp needs {}",
                               version_text(driver), version_text(runtime))};
  }
  if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) {
    return {false, "the NVIDIA driver shows no GPU; is CUDA_VISIBLE_DEVICES empty?"};
  }
  if (result != cudaSuccess) return {false, cudaGetErrorString(result)};
  return {};
}

int cuda_device_count() {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "count the GPUs");
  return count;
}

ComputeCapability compute_capability(int index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), fmt::format("query GPU {}", index));
  return {properties.major, properties.minor};
}

std::unique_ptr<Device> make_cuda_device(int index) {
  if (const Support support = cuda_support(); !support) {
    fail(ErrorKind::kUnavailable, "open GPU {}: {}", index, support.reason);
  }
  const int count = cuda_device_count();
  if (index < 0 || index >= count) {
    fail(ErrorKind::kUnavailable, "open GPU {}: the driver reports {} GPU(s), numbered from 0",
         index, count);
  }
  return std::make_unique<CudaDevice>(index);
}

}  // namespace gxp
