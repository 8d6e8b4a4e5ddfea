// CUDA graphs: kernels and copies that were recorded, and are queued again by one call. If the
// kernels are short, launching them dominates the time: some microseconds each.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <type_traits>

namespace gxp {

class CudaGraph {
 public:
  // Records the work that `start` queues, on `stream` alone, with its arguments as they are now;
  // nothing runs. Until it returns this thread may neither wait for the GPU nor allocate or free
  // its memory: kDevice, or an exception of `start`. Source: CUDA C++ Programming Guide, CUDA
  // Graphs, Stream Capture.
  CudaGraph(cudaStream_t stream, const std::function<void()>& start);
  // Queues it. It may be destroyed before it is done.
  void launch(cudaStream_t stream) const;

 private:
  template <class Handle>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>,
                                cudaError_t (*)(std::remove_pointer_t<Handle>*)>;
  Owned<cudaGraphExec_t> executable_;
};

}  // namespace gxp
