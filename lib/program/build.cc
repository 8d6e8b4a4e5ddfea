#include "lib/program/build.h"

#include <algorithm>
#include <utility>

#include "lib/program/program_builder.h"

namespace gxp {
namespace {

// What operations that read parameters are surrounded with.
class Gathers {
 public:
  Gathers(const std::vector<ParameterUse>& uses, const ParameterLayout& layout,
          const Strategy& strategy, const StepShape& shape)
      : points_(schedule_gathers(uses, layout, strategy.reshard_after_forward, shape.gathers)) {}

  template <class Emit>
  void around_next(ProgramBuilder& step, const Emit& emit) {
    const GatherPoint& point = points_[next_++];
    for (const int wrap : point.before) step.need_parameters(wrap);
    emit();
    for (const int wrap : point.behind) step.need_parameters(wrap);
    for (const int wrap : point.freed) step.release_parameters(wrap);
  }

 private:
  const std::vector<GatherPoint> points_;  // by use
  size_t next_ = 0;
};

// The order of a training step.
class TrainStep {
 public:
  TrainStep(const Architecture& architecture, const ParameterLayout& layout,
            const Strategy& strategy, const StepShape& shape, std::vector<Recompute> recompute)
      : layout_(layout),
        strategy_(strategy),
        shape_(shape),
        head_(int(architecture.units.size()) - 1),
        lowest_(architecture.lowest_trained_unit()),
        gathers_(parameter_uses(architecture, layout, shape.grad_accum, true), layout, strategy,
                 shape),
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
      for (int unit = 0; unit < head_; ++unit)
        gathers_.around_next(step_, [&] { step_.forward(unit, micro); });
      loss(micro);
      for (int unit = head_ - 1; unit >= lowest_; --unit) backward(unit, micro);
    }
    step_.measure_gradients();
    step_.clip_gradients();
    step_.update();
    for (int wrap = 0; wrap < wraps; ++wrap) step_.update_whole(wrap);
    std::vector<Bucket> buckets = step_.buckets();
    return {std::move(step_).finish(), std::move(buckets)};
  }

 private:
  void loss(int micro) {
    gathers_.around_next(step_, [&] { step_.loss(head_, micro); });
    if (is_last(micro) && shape_.world_size > 1) step_.reduce_loss();
    gradients_ready(head_, micro);
  }

  void backward(int unit, int micro) {
    gathers_.around_next(step_, [&] {
      step_.recompute(unit, micro);
      if (unit == lowest_ && is_last(micro)) step_.prefetch_update();
      step_.backward(unit, micro);
    });
    gradients_ready(unit, micro);
  }

  [[nodiscard]] const Wrap& wrap_of(int unit) const { return layout_.wrap_of_unit(unit); }

  [[nodiscard]] bool is_last(int micro) const { return micro + 1 == shape_.grad_accum; }

  void gradients_ready(int unit, int micro) {
    const Wrap& place = wrap_of(unit);
    const bool is_last_of_wrap = unit == std::max(place.first_unit, lowest_);
    if (!is_last_of_wrap || place.gradients.count == 0) return;
    const int wrap = layout_.wrap_of[size_t(unit)];
    step_.complete_gradients(wrap, micro);
    if (!step_.departs(micro)) return;
    if (strategy_.shard_optimizer)
      step_.scatter_gradients(wrap, micro);
    else if (step_.buckets()[next_bucket_].first_unit == place.first_unit)
      step_.reduce_gradients(int(next_bucket_++));
  }

  const ParameterLayout& layout_;
  const Strategy& strategy_;
  const StepShape& shape_;
  const int head_;
  const int lowest_;  // there is no backward below it
  Gathers gathers_;
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
  const Strategy& own = strategy_for(strategy, shape);
  Gathers gathers(parameter_uses(architecture, layout, 1, false), layout, own, shape);
  ProgramBuilder pass(architecture, layout, own, shape,
                      std::vector<Recompute>(architecture.units.size()));
  pass.next_batch(0);
  for (int unit = 0; unit < head; ++unit) gathers.around_next(pass, [&] { pass.forward(unit, 0); });
  gathers.around_next(pass, [&] { pass.evaluate(ending, head); });
  return std::move(pass).finish();
}

}  // namespace gxp
