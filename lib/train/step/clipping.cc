#include "lib/train/step/clipping.h"

#include <array>
#include <cmath>

#include "lib/collective/communicator.h"
#include "lib/optim/clip.h"
#include "lib/zero/gradients.h"

namespace gxp {
namespace {

// Steps that train.bad_step leaves out in a row, the last of which ends the run.
constexpr int kMostSkipped = 10;

// Of a NaN, whose sign means nothing.
double without_sign(double x) { return std::isnan(x) ? std::fabs(x) : x; }

}  // namespace

Clipping::Clipping(const RunConfig& config, Backend& backend, ShardedMemory& sharded,
                   RunningStep& step)
    : config_(config),
      ops_(*backend.ops),
      sharded_(sharded),
      step_(step),
      loss_sum_(*backend.device, sharded.memory.of(sharded.program.loss_sum)),
      norm_sums_(*backend.device, sharded.memory.of(sharded.program.norm_parts)) {
  const RunPlan& plan = sharded.plan;
  const int parts = plan.shape.norm_parts;
  const int each = parts / sharded.groups.world_size;
  for (int part = 0; part < parts; ++part) {
    const int owner = sharded.groups.owner_of(part / each);
    norm_parts_.push_back({trainable_parts(plan.architecture, make_parts(plan.layout, parts, part)),
                           size_t(owner * each + part % each),
                           !sharded.is_sharded() || owner == sharded.rank});
  }
  if (config.train.precision == NumberType::kFp16) scaler_.emplace(config.fp16);
  if (config.train.loss_outlier > 0) losses_.emplace();
  if (config.train.norm_outlier > 0) norms_.emplace();
}

KeyValues Clipping::saved_state() const {
  KeyValues saved;
  if (scaler_) {
    const LossScalerState& state = scaler_->state();
    saved = {{"fp16.scale", fmt::format("{}", state.scale)},
             {"fp16.steps", std::to_string(state.steps)},
             {"fp16.last_overflow", std::to_string(state.last_overflow)},
             {"fp16.hysteresis_left", std::to_string(state.hysteresis)},
             {"fp16.skipped_steps", std::to_string(skipped_)}};
  } else if (skipped_ > 0) {
    saved.emplace_back("skipped_steps", std::to_string(skipped_));
  }
  if (losses_) saved.emplace_back("outliers.losses", losses_->text());
  if (norms_) saved.emplace_back("outliers.norms", norms_->text());
  return saved;
}

void Clipping::continue_from(const KeyValues& saved) {
  const auto whole = [&](const char* key, int64_t missing) {
    const std::optional<std::string> text = find_value(saved, key);
    return text ? std::stoll(*text) : missing;
  };
  skipped_ = whole("fp16.skipped_steps", whole("skipped_steps", 0));
  skipped_in_a_row_ = 0;
  if (losses_)
    losses_->restore(find_value(saved, "outliers.losses").value_or(""),
                     "the losses in the checkpoint");
  if (norms_)
    norms_->restore(find_value(saved, "outliers.norms").value_or(""),
                    "the norms in the checkpoint");
  const std::optional<std::string> scale = find_value(saved, "fp16.scale");
  if (!scaler_ || !scale) return;
  scaler_.emplace(config_.fp16,
                  LossScalerState{.scale = std::stod(*scale),
                                  .steps = whole("fp16.steps", 0),
                                  .last_overflow = whole("fp16.last_overflow", -1),
                                  .hysteresis = int(whole("fp16.hysteresis_left", 1))});
}

std::function<void()> Clipping::bind(const Op& op) {
  if (op.kind == OpKind::kMeasureGradients) return bind_measure();
  if (op.kind == OpKind::kClipGradients) return [this] { clip(); };
  GXP_ASSERT(op.kind == OpKind::kGatherNorm);
  return sharded_.calls.bind(RankGroup::kWorld, Collective::kAllGather,
                             sharded_.tensor(sharded_.program.norm_parts));
}

std::function<void()> Clipping::bind_measure() {
  const Tensor sums = sharded_.tensor(sharded_.program.norm_parts);
  return [this, sums, gradients = sharded_.gradients()] {
    for (const NormPart& part : norm_parts_)
      if (part.is_own) sum_squares(ops_, sums.rows(part.place, 1), part.tensors, gradients);
  };
}

// Besides the sums of losses, the only place of a step where the host waits for the device.
void Clipping::clip() {
  Stream& compute = sharded_.lanes[Lane::kCompute];
  loss_sum_.fetch(compute);
  norm_sums_.fetch(compute);
  compute.finish(Deadline::after(kComputeTimeout));
  step_.clipped_at = std::chrono::steady_clock::now();
  const auto* sums = reinterpret_cast<const double*>(loss_sum_.host().data);
  const auto* squares = reinterpret_cast<const double*>(norm_sums_.host().data);
  StepResult& result = step_.result;
  result.loss = sums[0] / double(result.targets);
  result.stop_requested = sums[1] > 0;
  double all_squares = 0;
  for (const NormPart& part : norm_parts_) all_squares += squares[part.place];
  result.grad_norm = std::sqrt(all_squares) / result.loss_scale;
  step_.gradient_factor =
      clip_coefficient(result.grad_norm, config_.optim.clip) / result.loss_scale;
  judge();
}

// Every rank has the same sums, so all decide the same.
void Clipping::judge() {
  StepResult& result = step_.result;
  const bool finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  if (scaler_ && !scaler_->update(!finite)) fail_non_finite();
  if (scaler_ && !finite)
    return leave_out(fmt::format("gradients overflow at loss scale {}", result.loss_scale));
  if (!finite && config_.train.bad_step == BadStep::kStop) fail_non_finite();
  const std::string fault = find_fault();
  if (fault.empty()) {
    skipped_in_a_row_ = 0;
    return;
  }
  if (config_.train.bad_step == BadStep::kStop)
    fail(
        ErrorKind::kMismatch,
        "step {}: {}; the weights are those of step {}; look at the data of this step, try a lower "
        "optim.lr, or set train.bad_step",
        result.step, fault, result.step - 1);
  result.rolls_back = config_.train.bad_step == BadStep::kRollBack;
  if (!result.rolls_back && ++skipped_in_a_row_ == kMostSkipped)
    fail(ErrorKind::kMismatch,
         "step {}: {}, and {} steps in a row were left out (train.bad_step skip); the weights are "
         "those of step {}; try a lower optim.lr",
         result.step, fault, kMostSkipped, result.step - kMostSkipped);
  leave_out(fault);
}

std::string Clipping::find_fault() {
  const StepResult& result = step_.result;
  const auto fault = [](std::optional<Outliers>& outliers, double value, double limit,
                        std::string_view what) -> std::string {
    if (!std::isfinite(value)) return fmt::format("the {} is {}", what, without_sign(value));
    const std::optional<double> z = outliers ? outliers->add(value) : std::nullopt;
    if (!z || *z <= limit) return "";
    return fmt::format("the {} is {:.6g}, {:.2f} standard deviations above the mean of the last {}",
                       what, value, *z, Outliers::kWindow);
  };
  const std::string loss = fault(losses_, result.loss, config_.train.loss_outlier, "loss");
  const std::string norm =
      fault(norms_, result.grad_norm, config_.train.norm_outlier, "gradient norm");
  return loss.empty() || norm.empty() ? loss + norm : loss + ", and " + norm;
}

void Clipping::leave_out(std::string why) {
  step_.result.skipped = true;
  step_.result.why_skipped = std::move(why);
  ++skipped_;
}

// [collective] where gradients are sharded: the first such tensor of all ranks is named.
void Clipping::fail_non_finite() {
  const std::vector<TensorPart> trained =
      trainable_parts(sharded_.plan.architecture, sharded_.own_parts);
  const TensorPart* found = find_non_finite(ops_, trained, sharded_.gradients());
  std::array<int64_t, 1> first = {INT64_MAX};
  if (found != nullptr) first[0] = int64_t{found->unit} << 32 | found->tensor;
  if (sharded_.is_sharded())
    sharded_.calls.world().all_reduce(memory_of(first), DType::kI64, ReduceOp::kMin);
  std::string tensor = "none";
  if (first[0] != INT64_MAX)
    tensor = sharded_.spec_of({int(first[0] >> 32), int(first[0] & 0xffffffff), {}}).name;
  const StepResult& result = step_.result;
  if (scaler_)
    fail(ErrorKind::kMismatch,
         "step {}: the loss is {} and gradients overflow at the smallest loss scale, {} (first "
         "non-finite gradient: {}); the weights are those of step {}; use train.precision = "
         "\"bf16\", or a lower optim.lr",
         result.step, without_sign(result.loss), result.loss_scale, tensor, result.step - 1);
  fail(ErrorKind::kMismatch,
       "step {}: the loss is {} and the gradient norm {} (first non-finite gradient: {}); the "
       "weights are those of step {}; try a lower optim.lr, a longer lr_schedule.warmup_steps or a "
       "smaller optim.clip, or set train.bad_step",
       result.step, without_sign(result.loss), without_sign(result.grad_norm), tensor,
       result.step - 1);
}

}  // namespace gxp
