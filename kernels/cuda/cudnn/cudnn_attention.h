// Causal attention of kernels/ops.h by cuDNN: halves, heads of a multiple of 8 channels.
#pragma once

#include <memory>

#include "kernels/attention_args.h"
#include "kernels/cuda/cuda_queue.h"
#include "kernels/cuda/cudnn/cudnn_plans.h"
#include "kernels/cudnn_workspace.h"

namespace gxp {

//   Bits       a shape's plan is cuDNN's first choice with a fixed order of sums: the same in every
//              run with the same version of cuDNN on the same kind of GPU.
//   Workspace  is the queue's scratch memory: of backward, what cudnn_workspace_bytes() says of the
//              first slice, whatever the plan takes of it.
class CudnnAttention {
 public:
  // `queue` and `functions` outlive it.
  CudnnAttention(CudaQueue& queue, const CudnnFunctions& functions, size_t most_workspace);

  // Without it, nothing below may be called.
  [[nodiscard]] const Support& started() const { return plans_->started(); }

  // Queue the operation, or nothing and say why cuDNN does not compute it.
  Support forward(const AttentionForward& args);
  Support backward(const AttentionBackward& args);

 private:
  CudaQueue& queue_;
  size_t most_workspace_;
  std::shared_ptr<CudnnPlans> plans_;  // of the queue's GPU; owners: as cudnn_plans() says
};

}  // namespace gxp
