// Engine nccl's queue on a GPU. Only in builds with GXP_CUDA=ON.
#include <cuda_runtime_api.h>

#include <utility>

#include "lib/collective/engine/nccl/nccl_queue.h"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_device.h"
#include "lib/device/cuda_stream.h"

namespace gxp {
namespace {

class CudaQueue final : public NcclQueue {
 public:
  explicit CudaQueue(int local_rank)
      : device_(make_cuda_device(local_rank)), stream_(device_->make_stream("nccl")) {}

  [[nodiscard]] Device& device() override { return *device_; }
  [[nodiscard]] NcclStream stream() override { return native_stream(*stream_); }
  void copy(Memory to, ConstMemory from) override {
    check_cuda(
        cudaMemcpyAsync(to.data, from.data, to.bytes, cudaMemcpyDefault, native_stream(*stream_)),
        "copy between host and GPU for NCCL");
  }
  [[nodiscard]] bool done() override {
    const cudaError_t result = cudaStreamQuery(native_stream(*stream_));
    if (result == cudaErrorNotReady) return false;
    check_cuda(result, "wait for NCCL's work on the GPU");
    return true;
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace

std::unique_ptr<NcclQueue> make_cuda_queue(int local_rank) {
  return std::make_unique<CudaQueue>(local_rank);
}

}  // namespace gxp
