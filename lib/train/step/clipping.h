// The end of a step's backward pass: the global gradient norm, clipping, fp16's loss scale, and
// the error for numbers that are not finite.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/config/run_config.h"
#include "lib/device/mirror.h"
#include "lib/optim/loss_scaler.h"
#include "lib/train/step/backend.h"
#include "lib/train/step/step_result.h"
#include "lib/zero/sharded_memory.h"

namespace gxp {

// Carries out the operations of the part kClipping (op_kinds.inc).
//   Norm     one sum of squares for each part of all parameters, whichever rank holds it, added in
//            their order: so the norm has the same bits under every strategy.
//   Results  loss, grad_norm, stop_requested and skipped of the step, and its gradient_factor.
//   Errors   kMismatch: the loss or the norm is not finite, and in fp16 the loss scale is at its
//            minimum; the message names the first such gradient. No weight has changed.
class Clipping {
 public:
  // All arguments outlive it.
  Clipping(const RunConfig& config, Backend& backend, ShardedMemory& sharded, RunningStep& step);

  std::function<void()> bind(const Op& op);

  // The factor of the loss in the next step.
  [[nodiscard]] double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }
  [[nodiscard]] int64_t steps_skipped() const { return skipped_; }
  // The part of it that checkpoints save. Empty without fp16.
  [[nodiscard]] KeyValues scaling() const;
  // Restores it; missing values, as in a checkpoint of a run without fp16, start anew.
  void continue_scaling(const KeyValues& saved);

 private:
  // One of the StepShape::norm_parts.
  struct NormPart {
    std::vector<TensorPart> tensors;
    size_t place;  // of its sum
    bool is_own;   // this rank sums it
  };
  std::function<void()> bind_measure();
  void clip();
  [[noreturn]] void fail_non_finite();

  const RunConfig& config_;
  Ops& ops_;
  ShardedMemory& sharded_;
  RunningStep& step_;
  std::vector<NormPart> norm_parts_;
  const Mirror loss_sum_;             // of the program's buffer
  const Mirror norm_sums_;            // of its norm_parts
  std::optional<LossScaler> scaler_;  // of fp16
  int64_t skipped_ = 0;
};

}  // namespace gxp
