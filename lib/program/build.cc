#include "lib/program/build.h"

#include <utility>

#include "lib/program/program_builder.h"

namespace gxp {
namespace {

// The order of a training step.
class TrainStep {
 public:
  TrainStep(const Architecture& architecture, const ParameterLayout& layout,
            const Strategy& strategy, const StepShape& shape, std::vector<Recompute> recompute)
      : strategy_(strategy),
        shape_(shape),
        head_(int(architecture.units.size()) - 1),
        lender_(architecture.units.back().borrows_from),
        buckets_(make_buckets(layout, shape.bucket_bytes)),
        step_(architecture, layout, strategy, shape, std::move(recompute)) {}

  BuiltStep build() && {
    step_.train_buffers();
    for (int unit = 0; unit <= head_; ++unit) {
      step_.round_parameters(unit);
      step_.publish_parameters(unit);
    }
    for (int micro = 0; micro < shape_.grad_accum; ++micro) {
      step_.next_batch(micro);
      forward(micro);
      loss(micro);
      backward(micro);
    }
    step_.measure_gradients();
    step_.clip_gradients();
    step_.update();
    for (int unit = 0; unit <= head_; ++unit) step_.update_whole(unit);
    return {std::move(step_).finish(), std::move(buckets_)};
  }

 private:
  // What the unit after this one needs is gathered beside it. The last unit before the head is the
  // first of the backward pass, and is kept.
  void forward(int micro) {
    step_.need_parameters(0);
    for (int unit = 0; unit < head_; ++unit) {
      need(unit + 1);
      step_.forward(unit, micro);
      if (strategy_.reshard_after_forward && unit + 1 < head_) step_.release_parameters(unit);
    }
  }

  void loss(int micro) {
    step_.loss(head_, micro);
    step_.release_parameters(head_);
    if (lender_ >= 0) step_.release_parameters(lender_);
    if (is_last(micro) && shape_.world_size > 1) step_.reduce_loss();
    gradients_ready(head_, micro);
  }

  void backward(int micro) {
    for (int unit = head_ - 1; unit >= 0; --unit) {
      if (unit > 1) step_.need_parameters(unit - 1);
      step_.recompute(unit, micro);
      if (unit == 0 && is_last(micro)) step_.prefetch_update();
      step_.backward(unit, micro);
      step_.release_parameters(unit);
      gradients_ready(unit, micro);
    }
  }

  void need(int unit) {
    step_.need_parameters(unit);
    if (unit == head_ && lender_ >= 0) step_.need_parameters(lender_);
  }

  [[nodiscard]] bool is_last(int micro) const { return micro + 1 == shape_.grad_accum; }

  void gradients_ready(int unit, int micro) {
    step_.complete_sum(unit, micro);
    if (shape_.world_size == 1) return;
    if (strategy_.shard_optimizer) {
      if (is_last(micro) || ProgramBuilder::keeps_gradient_shards(strategy_, shape_))
        step_.scatter_gradients(unit, micro);
    } else if (is_last(micro) && buckets_[next_bucket_].first_unit == unit) {
      step_.reduce_gradients(int(next_bucket_), buckets_[next_bucket_]);
      ++next_bucket_;
    }
  }

  const Strategy& strategy_;
  const StepShape& shape_;
  const int head_;
  const int lender_;  // whose table a tied head reads; -1: nobody's
  std::vector<Bucket> buckets_;
  size_t next_bucket_ = 0;
  ProgramBuilder step_;
};

// One rank has nobody to share with. Of parameters that it has offloaded, it holds a unit's at a
// time, as zero3 does.
const Strategy& strategy_for(const Strategy& strategy, const StepShape& shape) {
  if (shape.world_size > 1) return strategy;
  const bool whole = shape.offload.parameters == Storage::kDevice;
  return whole ? strategies().front() : find_strategy("zero3");
}

}  // namespace

BuiltStep build_train_step(const Architecture& architecture, const ParameterLayout& layout,
                           const Strategy& strategy, const StepShape& shape) {
  const auto build_with = [&](std::vector<Recompute> recompute) {
    return TrainStep(architecture, layout, strategy_for(strategy, shape), shape,
                     std::move(recompute))
        .build();
  };
  std::vector<Recompute> recompute =
      recompute_by_unit(architecture, shape.recompute, shape.recompute_units);
  BuiltStep step = build_with(recompute);
  Recompute& last = recompute[recompute.size() - 2];
  if (last == Recompute::kNone) return step;
  last = Recompute::kNone;
  BuiltStep keeping = build_with(recompute);
  return keeping.program.arena_bytes <= step.program.arena_bytes ? std::move(keeping)
                                                                 : std::move(step);
}

StepProgram build_forward(const Architecture& architecture, const ParameterLayout& layout,
                          const Strategy& strategy, const StepShape& shape, OpKind ending) {
  const int head = int(architecture.units.size()) - 1;
  const int lender = architecture.units.back().borrows_from;
  ProgramBuilder pass(architecture, layout, strategy_for(strategy, shape), shape,
                      std::vector<Recompute>(architecture.units.size()));
  pass.next_batch(0);
  for (int unit = 0; unit < head; ++unit) {
    pass.need_parameters(unit);
    pass.need_parameters(unit + 1);
    pass.forward(unit, 0);
    pass.release_parameters(unit);
  }
  if (lender >= 0) pass.need_parameters(lender);
  pass.evaluate(ending, head);
  return std::move(pass).finish();
}

}  // namespace gxp
