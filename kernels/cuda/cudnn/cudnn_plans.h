// Plans of attention by cuDNN, made once in a process for each GPU: one takes 0.3 to 1.1 s (cuDNN
// 9.19 compiles kernels for it), and ranks and models that share a GPU need the same ones.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "kernels/cuda/cudnn/cudnn_attention_graph.h"

namespace gxp {

enum class CudnnDirection { kForward, kBackward };

struct CudnnPlan {
  CudnnGraph graph;
  Support support;  // why there is none
};

//   Threads   any. A plan is made while the others wait; calls are queued one at a time, with the
//             one handle that a GPU has.
//   Order     the GPU that it was made for is current in each call.
class CudnnPlans {
 public:
  // Makes a handle for the current GPU. `functions` outlives it.
  explicit CudnnPlans(const CudnnFunctions& functions);
  // Without it, nothing below may be called.
  [[nodiscard]] const Support& started() const { return started_; }
  // Made by the first call with such a shape; lives as long as this.
  CudnnPlan& plan(CudnnDirection direction, const CudnnAttentionShape& shape);
  void run(CudnnPlan& plan, std::span<const CudnnGraph::TensorBinding> bindings, void* workspace,
           cudaStream_t stream);

 private:
  const CudnnFunctions& functions_;
  std::unique_ptr<CudnnContext, CudnnStatus (*)(CudnnContext*)> handle_;
  Support started_;
  std::mutex mutex_;  // guards the handle and what follows
  std::map<std::pair<CudnnDirection, CudnnAttentionShape>, CudnnPlan> plans_;
};

// The process's plans for the current GPU, owned by it and by the callers; those that could not be
// started are not kept. Never destroyed with the process: CUDA may be gone before.
std::shared_ptr<CudnnPlans> cudnn_plans(const CudnnFunctions& functions);
// Later calls get new ones: for tests of a cuDNN that changes.
void forget_cudnn_plans();

}  // namespace gxp
