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
      : layout_(layout),
        strategy_(strategy),
        shape_(shape),
        head_(int(architecture.units.size()) - 1),
        lender_(architecture.units.back().borrows_from),
        buckets_(make_buckets(layout, shape.bucket_bytes)),
        step_(architecture, layout, strategy, shape, std::move(recompute)) {}

  BuiltStep build() && {
    step_.train_buffers();
    const int wraps = int(layout_.wraps.size());
    for (int wrap = 0; wrap < wraps; ++wrap) {
      step_.round_parameters(wrap);
      step_.publish_parameters(wrap);
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
    for (int wrap = 0; wrap < wraps; ++wrap) step_.update_whole(wrap);
    return {std::move(step_).finish(), std::move(buckets_)};
  }

 private:
  // What the unit after this one needs is gathered beside it. The last unit before the head is the
  // first of the backward pass, and its wrap is kept.
  void forward(int micro) {
    for (int unit = 0; unit < head_; ++unit) {
      need(unit);
      if (shape_.forward_prefetch) need(unit + 1);
      step_.forward(unit, micro);
      const bool reshards = strategy_.reshard_after_forward && !is_first_of_backward(unit);
      if (reshards && wrap_of(unit).last_unit == unit) release(unit);
    }
    need(head_);
  }

  void loss(int micro) {
    step_.loss(head_, micro);
    if (!is_first_of_backward(head_)) release(head_);
    if (lender_ >= 0 && !is_first_of_backward(lender_)) release(lender_);
    if (is_last(micro) && shape_.world_size > 1) step_.reduce_loss();
    gradients_ready(head_, micro);
  }

  // The embedding's backward reads no parameters.
  void backward(int micro) {
    for (int unit = head_ - 1; unit >= 0; --unit) {
      if (unit > 0) need(unit);
      if (unit > 1 && shape_.backward_prefetch == BackwardPrefetch::kPre) need(unit - 1);
      step_.recompute(unit, micro);
      if (unit == 0 && is_last(micro)) step_.prefetch_update();
      step_.backward(unit, micro);
      if (unit > 1 && shape_.backward_prefetch == BackwardPrefetch::kPost) need(unit - 1);
      if (wrap_of(unit).first_unit == unit) release(unit);
      gradients_ready(unit, micro);
    }
  }

  [[nodiscard]] const Wrap& wrap_of(int unit) const { return layout_.wrap_of_unit(unit); }
  [[nodiscard]] bool is_first_of_backward(int unit) const {
    return layout_.wrap_of[size_t(unit)] == layout_.wrap_of[size_t(head_) - 1];
  }

  void need(int unit) {
    step_.need_parameters(layout_.wrap_of[size_t(unit)]);
    if (unit == head_ && lender_ >= 0) step_.need_parameters(layout_.wrap_of[size_t(lender_)]);
  }
  void release(int unit) { step_.release_parameters(layout_.wrap_of[size_t(unit)]); }

  [[nodiscard]] bool is_last(int micro) const { return micro + 1 == shape_.grad_accum; }

  void gradients_ready(int unit, int micro) {
    if (wrap_of(unit).first_unit != unit) return;
    const int wrap = layout_.wrap_of[size_t(unit)];
    step_.complete_sum(wrap, micro);
    if (shape_.world_size == 1) return;
    if (strategy_.shard_optimizer) {
      if (is_last(micro) || ProgramBuilder::keeps_gradient_shards(strategy_, shape_))
        step_.scatter_gradients(wrap, micro);
    } else if (is_last(micro) && buckets_[next_bucket_].first_unit == unit) {
      step_.reduce_gradients(int(next_bucket_), buckets_[next_bucket_]);
      ++next_bucket_;
    }
  }

  const ParameterLayout& layout_;
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
    pass.need_parameters(layout.wrap_of[size_t(unit)]);
    pass.need_parameters(layout.wrap_of[size_t(unit) + 1]);
    pass.forward(unit, 0);
    if (layout.wrap_of_unit(unit).last_unit == unit)
      pass.release_parameters(layout.wrap_of[size_t(unit)]);
  }
  if (lender >= 0) pass.need_parameters(layout.wrap_of[size_t(lender)]);
  pass.evaluate(ending, head);
  return std::move(pass).finish();
}

}  // namespace gxp
