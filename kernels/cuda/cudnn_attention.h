// Causal attention of kernels/ops.h by cuDNN: halves, heads of a multiple of 8 channels.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kernels/attention_args.h"
#include "kernels/cuda/cuda_queue.h"
#include "kernels/cuda/cudnn_attention_graph.h"
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
  [[nodiscard]] const Support& started() const { return started_; }

  // Queue the operation, or nothing and say why cuDNN does not compute it.
  Support forward(const AttentionForward& args);
  Support backward(const AttentionBackward& args);

 private:
  enum class Direction { kForward, kBackward };
  struct Prepared {
    CudnnGraph graph;
    Support support;
  };
  Prepared& prepare(Direction direction, const CudnnAttentionShape& shape);

  CudaQueue& queue_;
  const CudnnFunctions& functions_;
  size_t most_workspace_;
  std::unique_ptr<CudnnContext, CudnnStatus (*)(CudnnContext*)> handle_;
  Support started_;
  std::map<std::pair<Direction, CudnnAttentionShape>, Prepared> prepared_;
};

}  // namespace gxp
