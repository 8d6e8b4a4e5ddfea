// The end of a step's backward pass: the global norm, clipping, fp16's loss scale, and what is said
// of numbers that are not finite.
#include <array>
#include <chrono>
#include <cmath>

#include "lib/optim/clip.h"
#include "lib/train/trainer.h"
#include "lib/zero/gradients.h"

namespace gxp {

// Besides the sums of losses, the only place of a step where the host waits for the device.
void Trainer::clip() {
  loss_sum_.fetch(compute());
  norm_sums_.fetch(compute());
  finish_compute();
  clipped_at_ = std::chrono::steady_clock::now();
  const auto* sums = reinterpret_cast<const double*>(loss_sum_.host().data);
  const auto* squares = reinterpret_cast<const double*>(norm_sums_.host().data);
  result_.loss = sums[0] / double(tokens_per_step());
  result_.stop_wished = sums[1] > 0;
  double all_squares = 0;
  for (size_t part = 0; part < norm_parts_.size(); ++part)
    all_squares += squares[place_of_norm_part(part)];
  result_.grad_norm = std::sqrt(all_squares) / result_.loss_scale;
  gradient_factor_ = clip_coefficient(result_.grad_norm, config_.optim.clip) / result_.loss_scale;
  const bool finite = std::isfinite(result_.loss) && std::isfinite(result_.grad_norm);
  if (!scaler_) {
    if (!finite) fail_non_finite();
    return;
  }
  // Every rank has the same sums, so all decide alike.
  if (!scaler_->update(!finite)) fail_non_finite();
  result_.skipped = !finite;
  if (result_.skipped) ++skipped_;
}

// [collective] where gradients are sharded: the first such tensor of all ranks is named.
void Trainer::fail_non_finite() {
  const std::vector<TensorPart> trained = trainable_parts(plan_.architecture, own_parts_);
  const TensorPart* found = find_non_finite(*backend_.ops, trained, gradients());
  std::array<int64_t, 1> first = {INT64_MAX};
  if (found != nullptr) first[0] = int64_t{found->unit} << 32 | found->tensor;
  if (is_sharded()) communicator_.all_reduce(memory_of(first), DType::kI64, ReduceOp::kMin);
  std::string tensor = "none";
  if (first[0] != INT64_MAX)
    tensor = plan_.architecture.units[size_t(first[0] >> 32)]
                 .tensors[size_t(first[0] & 0xffffffff)]
                 .name;
  const auto unsigned_nan = [](double x) { return std::isnan(x) ? std::fabs(x) : x; };
  if (scaler_) {
    fail(ErrorKind::kMismatch,
         "step {}: the loss is {} and gradients overflow at the smallest loss scale, {} (first "
         "non-finite gradient: {}); the weights are those of step {}; use train.precision = "
         "\"bf16\", or a lower optim.lr",
         result_.step, unsigned_nan(result_.loss), result_.loss_scale, tensor, step_);
  }
  fail(ErrorKind::kMismatch,
       "step {}: the loss is {} and the gradient norm {} (first non-finite gradient: {}); the "
       "weights are those of step {}; try a lower optim.lr, a longer lr_schedule.warmup_steps or a "
       "smaller optim.clip",
       result_.step, unsigned_nan(result_.loss), unsigned_nan(result_.grad_norm), tensor, step_);
}

}  // namespace gxp
