// Engine nccl's queue on a GPU. Only in builds with GXP_CUDA=ON.
#include <cuda_runtime_api.h>

#include <utility>

#include "lib/collective/engine/nccl/nccl_queue.h"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_device.h"
#include "lib/device/cuda_stream.h"

namespace gxp {
namespace {

// The end of what a stream holds. The stream's GPU is the calling thread's.
class CudaMark final : public NcclMark {
 public:
  explicit CudaMark(cudaStream_t stream) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "create NCCL's event");
    check_cuda(cudaEventRecord(event_, stream), "record NCCL's event");
  }
  CudaMark(const CudaMark&) = delete;
  CudaMark& operator=(const CudaMark&) = delete;
  ~CudaMark() override { cudaEventDestroy(event_); }
  void hold_back(cudaStream_t stream) const {
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), "let a stream wait for NCCL's event");
  }
  [[nodiscard]] bool passed() override {
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) return false;
    check_cuda(result, "run NCCL's work on the GPU");
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class NcclCudaQueue final : public NcclQueue {
 public:
  NcclCudaQueue(Device& device, std::unique_ptr<Device> owned)
      : owned_(std::move(owned)), device_(device), stream_(device.make_urgent_stream("nccl")) {}

  [[nodiscard]] Device& device() override { return device_; }
  [[nodiscard]] NcclStream stream() override { return native_stream(*stream_); }
  void copy(Memory to, ConstMemory from) override { stream_->copy(to, from); }
  [[nodiscard]] bool done() override {
    const cudaError_t result = cudaStreamQuery(native_stream(*stream_));
    if (result == cudaErrorNotReady) return false;
    check_cuda(result, "wait for NCCL's work on the GPU");
    return true;
  }
  [[nodiscard]] std::unique_ptr<NcclMark> mark() override {
    return std::make_unique<CudaMark>(native_stream(*stream_));
  }
  // CUDA keeps an event that is destroyed until those that wait for it have passed.
  void follow(Stream& stream) override {
    CudaMark(native_stream(stream)).hold_back(native_stream(*stream_));
  }
  void precede(Stream& stream) override {
    CudaMark(native_stream(*stream_)).hold_back(native_stream(stream));
  }

 private:
  std::unique_ptr<Device> owned_;
  Device& device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace

std::unique_ptr<NcclQueue> make_cuda_queue(Device& device, std::unique_ptr<Device> owned) {
  return std::make_unique<NcclCudaQueue>(device, std::move(owned));
}

}  // namespace gxp
