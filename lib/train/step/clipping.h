// The end of a step's backward pass: the global gradient norm, clipping, fp16's loss scale, and
// steps that are left out or end the run: numbers that are not finite, outliers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/config/run_config.h"
#include "lib/device/mirror.h"
#include "lib/optim/loss_scaler.h"
#include "lib/optim/outliers.h"
#include "lib/train/step/backend.h"
#include "lib/train/step/step_result.h"
#include "lib/zero/sharded_memory.h"

namespace gxp {

// Carries out the operations of the part kClipping (op_kinds.inc).
//   Norm     one sum of squares for each part of all parameters, whichever rank holds it, added in
//            their order: so the norm has the same bits under every strategy.
//   Results  loss, grad_norm, stop_requested and skipped of the step, and its gradient_factor.
//   Errors   kMismatch: the loss or the norm is not finite or an outlier, and train.bad_step is stop,
//            or this was the last step that may be skipped; in fp16 the loss scale is at its minimum.
//            The message names the first gradient that is not finite. No weight has changed.
class Clipping {
 public:
  // All arguments outlive it.
  Clipping(const RunConfig& config, Backend& backend, ShardedMemory& sharded, RunningStep& step);

  std::function<void()> bind(const Op& op);

  // The factor of the loss in the next step.
  [[nodiscard]] double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }
  [[nodiscard]] int64_t steps_skipped() const { return skipped_; }
  // The part of it that checkpoints save.
  [[nodiscard]] KeyValues saved_state() const;
  // Restores it; missing values, as in a checkpoint of a run without fp16, start anew.
  void continue_from(const KeyValues& saved);

 private:
  // One of the StepShape::norm_parts.
  struct NormPart {
    std::vector<TensorPart> tensors;
    size_t place;  // of its sum
    bool is_own;   // this rank sums it
  };
  std::function<void()> bind_measure();
  void clip();
  // Decides what becomes of the step.
  void judge();
  // What is wrong with the step, "the loss is nan"; "": nothing.
  [[nodiscard]] std::string find_fault();
  void leave_out(std::string why);
  [[noreturn]] void fail_non_finite();

  const RunConfig& config_;
  Ops& ops_;
  ShardedMemory& sharded_;
  RunningStep& step_;
  std::vector<NormPart> norm_parts_;
  const Mirror loss_sum_;                   // of the program's buffer
  const Mirror norm_sums_;                  // of its norm_parts
  std::optional<LossScaler> scaler_;        // of fp16
  std::optional<Outliers> losses_, norms_;  // where the settings ask for them
  int64_t skipped_ = 0;
  int skipped_in_a_row_ = 0;  // for another reason than the loss scale
};

}  // namespace gxp
