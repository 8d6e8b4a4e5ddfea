#include "lib/device/cuda_graph.h"

#include <exception>

#include "lib/device/cuda_check.h"

namespace gxp {

CudaGraph::CudaGraph(cudaStream_t stream, const std::function<void()>& start)
    : executable_(nullptr, cudaGraphExecDestroy) {
  // Other threads may do what they like meanwhile: the streams of other lanes are theirs.
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
             "begin to record a CUDA graph");
  std::exception_ptr failure;
  try {
    start();
  } catch (...) {
    failure = std::current_exception();
  }
  cudaGraph_t recorded = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &recorded);
  const Owned<cudaGraph_t> graph(recorded, cudaGraphDestroy);
  if (failure) {
    cudaGetLastError();  // of the end, which the failure explains
    std::rethrow_exception(failure);
  }
  check_cuda(ended, "record a CUDA graph");
  cudaGraphExec_t made = nullptr;
  check_cuda(cudaGraphInstantiate(&made, recorded, 0), "make a CUDA graph");
  executable_.reset(made);
}

void CudaGraph::launch(cudaStream_t stream) const {
  check_cuda(cudaGraphLaunch(executable_.get(), stream), "queue a CUDA graph");
}

}  // namespace gxp
