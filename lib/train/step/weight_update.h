// The optimizer's update of the weights that this rank holds.
#pragma once

#include <functional>
#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/train/step/backend.h"
#include "lib/train/step/step_result.h"
#include "lib/zero/parameters.h"

namespace gxp {

// Carries out the operations of the part kWeightUpdate (op_kinds.inc). A skipped step changes
// nothing. All tensors are found before the first step.
//   Threads  one at a time. The functions that are returned run on the lane of their operation.
//   Errors   kConfig, from the constructor: optim.name is unknown. kPeer, from the functions of
//            kGatherDirections: a rank failed.
class WeightUpdate {
 public:
  // All arguments outlive it.
  WeightUpdate(const RunConfig& config, Backend& backend, ShardedMemory& sharded,
               Parameters& parameters, const RunningStep& step);

  std::function<void()> bind(const Op& op);

 private:
  // This rank's part of a tensor that the optimizer sees whole.
  struct WholePart {
    UpdateRange range;
    Tensor direction;
  };

  std::function<void()> bind_elements(const Op& op);
  std::function<void()> bind_prepare(const Op& op);
  std::function<void()> bind_gather(const Op& op);
  std::function<void()> bind_whole(const Op& op);
  [[nodiscard]] UpdateRange range_in(const Op& op, size_t own_part, const Range& elements) const;
  [[nodiscard]] Tensor parameters_in(const Op& op, const TensorPart& part,
                                     const Range& elements) const;
  [[nodiscard]] Tensor direction_of(const Op& op, const TensorPart& part) const;
  [[nodiscard]] std::vector<WholePart> own_parts_of(const Op& op) const;
  [[nodiscard]] WholeTensor whole_tensor(const Op& op, size_t tensor) const;
  [[nodiscard]] bool needs_unsharded(const TensorPart& part) const;
  [[nodiscard]] UpdateStep update_step() const;

  ShardedMemory& sharded_;
  Parameters& parameters_;
  const RunningStep& step_;
  const bool decay_vectors_;
  const uint64_t seed_;
  const Optimizer optimizer_;
};

}  // namespace gxp
