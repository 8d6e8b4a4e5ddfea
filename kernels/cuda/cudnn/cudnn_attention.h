// Causal attention of kernels/ops.h by cuDNN: halves, heads of a multiple of 8 channels, scores with
// neither a window nor a cap.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_args.h"
#include "kernels/cuda/choice_cache.h"
#include "kernels/cuda/cuda_queue.h"
#include "kernels/cuda/cudnn/cudnn_plans.h"
#include "kernels/cudnn_workspace.h"

namespace gxp {

// How a batch is cut into calls of backward, and what these may do.
struct CudnnSlicing {
  size_t most_bytes = kMostCudnnWorkspace;  // of workspace for a call
  // The file of choice_cache.h: slices of half as many bytes, a quarter and so on are timed once, too,
  // for they may stay in the GPU's L2 cache. "": as few slices as `most_bytes` allow.
  std::string cache = {};
  SumOrder order = SumOrder::kFixed;
};

//   Bits       a shape's plan is cuDNN's first choice with a fixed order of sums: the same in every
//              run with the same version of cuDNN on the same kind of GPU. With SumOrder::kAny it is
//              cuDNN's first choice, and queries' gradients differ from run to run.
//   Workspace  is the queue's scratch memory: of backward, what cudnn_workspace_bytes() says of the
//              largest slice, whatever the plan takes of it; with SumOrder::kAny, for which that is
//              often twice as much, what the plan says.
class CudnnAttention {
 public:
  // `queue` and `functions` outlive it.
  CudnnAttention(CudaQueue& queue, const CudnnFunctions& functions, const CudnnSlicing& slicing);

  // Without it, nothing below may be called.
  [[nodiscard]] const Support& started() const { return plans_->started(); }

  // Queue the operation, or nothing and say why cuDNN does not compute it.
  Support forward(const AttentionForward& args);
  Support backward(const AttentionBackward& args);

 private:
  using Slices = std::vector<AttentionSlice>;
  CudnnPlan& plan_of(const AttentionBackward& args, const AttentionSlice& slice);
  Support support_of(const AttentionBackward& args, const Slices& slices);
  size_t workspace_bytes(const AttentionBackward& args, const AttentionSlice& slice);
  void run(const AttentionBackward& args, const Slices& slices);
  const Slices& slices_of(const AttentionBackward& args, const Slices& fewest);
  Slices fastest_of(const AttentionBackward& args, const Slices& fewest);

  CudaQueue& queue_;
  CudnnSlicing slicing_;
  std::optional<ChoiceCache> cache_;
  std::map<CudnnAttentionShape, Slices> chosen_;  // by the whole batch
  std::shared_ptr<CudnnPlans> plans_;  // of the queue's GPU; owners: as cudnn_plans() says
};

}  // namespace gxp
