#include "kernels/cuda/cuda_queue.h"

#include <algorithm>

#include "lib/device/cuda_check.h"
#include "lib/device/cuda_stream.h"
#include "lib/device/cuda_wait.h"

namespace gxp {
namespace {

constexpr size_t kFirstScratchBytes = size_t{1} << 20;

}  // namespace

CudaQueue::CudaQueue(Stream& stream, Device& device) : stream_(stream), device_(device) {
  native_stream(stream);  // makes its GPU current
  gpu_ = size_of_gpu();
}

GpuStream CudaQueue::stream() const { return {native_stream(stream_), gpu_}; }

std::string CudaQueue::gpu_name() const {
  const std::string description = device_.description();  // "cuda:0, ..."
  return description.substr(description.find(", ") + 2);
}

std::byte* CudaQueue::scratch(size_t bytes) {
  if (bytes > scratch_.memory().bytes) {
    finish();
    forget_recordings(stream_);
    grow(scratch_, std::max(bytes, kFirstScratchBytes), device_, MemoryKind::kWorkspace);
  }
  return scratch_.memory().data;
}

void CudaQueue::finish() {
  constexpr const char* kAct = "wait for the GPU's operations";
  check_cuda(wait_for_gpu(stream(), Deadline::after(kComputeTimeout), kAct), kAct);
}

void CudaQueue::copy_to_host(void* host, const void* value, size_t bytes) {
  check_cuda(cudaMemcpyAsync(host, value, bytes, cudaMemcpyDefault, stream()),
             "read a sum from the GPU");
  int outside = 0;
  check_cuda(cudaMemcpyAsync(&outside, outside_flag(), sizeof outside, cudaMemcpyDefault, stream()),
             "read whether an index was outside of its table");
  finish();
  if (outside != 0)
    fail(ErrorKind::kInternal,
         "compute on the GPU: the batch has a token or target beyond the vocabulary; the caller "
         "must check them");
}

int* CudaQueue::outside_flag() {
  if (outside_.memory().data == nullptr)
    outside_ = device_.allocate(sizeof(int), MemoryKind::kWorkspace);
  return reinterpret_cast<int*>(outside_.memory().data);
}

Buffer CudaQueue::upload(const std::vector<float>& host) {
  finish();
  forget_recordings(stream_);  // its owner replaces the copy that it had
  Buffer copy = device_.allocate(host.size() * sizeof(float), MemoryKind::kWorkspace);
  device_.copy(copy.memory(), memory_of(host));
  return copy;
}

}  // namespace gxp
