#include "lib/train/model/forward_pass.h"

#include <utility>

namespace gxp {

ForwardPass::ForwardPass(RankModel& model, const StepShape& shape, StepProgram program,
                         const std::vector<KeyValueCache>* past)
    : rank_(model),
      past_(past),
      shape_(shape),
      program_(std::move(program)),
      memory_(*model.backend.device, program_, model.sharded.memory),
      model_(make_model(model.plan.architecture, *model.backend.ops)),
      runner_(model.sharded.lanes, program_, memory_, [this](const Op& op) { return bind(op); }) {}

std::function<void()> ForwardPass::bind(const Op& op) {
  ShardedMemory& sharded = rank_.sharded;
  if (op.lane == Lane::kOffload) return sharded.offloaded.bind(op, program_, memory_);
  if (op.kind == OpKind::kGatherParameters)
    return rank_.parameters.bind_gather(op, program_, memory_);
  if (op.kind == OpKind::kNextBatch)
    return bind_next_batch(sharded.lanes, memory_, shape_, op,
                           [this](const BatchTensors& batch) { fill(batch); });
  const UnitTensors t = bind_unit(rank_.plan, shape_, memory_, op);
  if (op.kind == OpKind::kForward && past_ != nullptr)
    return [this, t, unit = op.unit, &past = (*past_)[size_t(op.unit)]] {
      model_->extend(unit, t, past, first);
    };
  if (op.kind == OpKind::kForward) return [this, t, unit = op.unit] { model_->forward(unit, t); };
  return [this, t, is_loss = op.kind == OpKind::kEvaluateLoss] {
    if (is_loss)
      model_->evaluate_loss(t);
    else
      model_->logits(t);
    finish(t);
  };
}

}  // namespace gxp
