#include "lib/program/build.h"

#include <algorithm>
#include <utility>

#include "lib/program/unit_writer.h"
#include "lib/program/update_writer.h"

namespace gxp {
namespace {

// The writers of one step program, each of which owns one aspect of it. They are called in the
// order of the step; each call appends operations, and what they touch follows from the model's
// units and from where parameters and gradients lie then. Strategy decides what is appended, not
// how it runs.
//
//   writer       operations, buffers, uses             program_writer.h
//   offload      tiles, fetches and stores             offload_writer.h
//   parameters   round, publish, gather, release       parameter_writer.h
//   gradients    accumulate, round, reduce, scatter    gradient_writer.h
//   units        batch, forward, loss, backward        unit_writer.h
//   update       norm, clipping, optimizer             update_writer.h
struct Writers {
  // `recompute`: by unit. The program has the buffer of the parameters.
  Writers(const StepInputs& step_inputs, std::vector<Recompute> recompute)
      : inputs(step_inputs),
        offload(writer, inputs),
        parameters(writer, inputs, offload),
        gradients(writer, inputs),
        units({writer, parameters, gradients}, inputs, std::move(recompute)),
        update(writer, inputs, offload) {
    writer.program.groups = inputs.groups;
  }
  // Not copied: the writers refer to each other.
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;

  // The program with places, lives and order.
  StepProgram finish() && {
    place_buffers(writer.program);
    derive_order(writer.program);
    return std::move(writer.program);
  }

  const StepInputs inputs;
  ProgramWriter writer;
  OffloadWriter offload;
  ParameterWriter parameters;
  GradientWriter gradients;
  UnitWriter units;
  UpdateWriter update;
};

// Gathers and frees parameters around the operations that read them.
class Gathers {
 public:
  // `micros`: of the step; `backward`: whether it has a backward pass.
  Gathers(const StepInputs& inputs, int micros, bool backward)
      : points_(schedule_gathers(
            parameter_uses(inputs.architecture, inputs.layout, micros, backward), inputs.layout,
            inputs.strategy.reshard_after_forward, inputs.shape.gathers)) {}

  template <class Emit>
  void around_next(ParameterWriter& parameters, const Emit& emit) {
    const GatherPoint& point = points_[next_++];
    for (const int wrap : point.before) parameters.need(wrap);
    emit();
    for (const int wrap : point.behind) parameters.need(wrap);
    for (const int wrap : point.freed) parameters.release(wrap);
  }

 private:
  const std::vector<GatherPoint> points_;  // by use
  size_t next_ = 0;
};

// The order of a training step.
class TrainStep {
 public:
  TrainStep(const StepInputs& inputs, std::vector<Recompute> recompute)
      : inputs_(inputs),
        head_(int(inputs.architecture.units.size()) - 1),
        lowest_(inputs.architecture.lowest_trained_unit()),
        gathers_(inputs, inputs.shape.grad_accum, true),
        step_(inputs, std::move(recompute)) {}

  BuiltStep build() && {
    step_.writer.program.optimizer_shards = inputs_.optimizer_shards();
    step_.gradients.make_buffer();
    step_.update.make_buffers();
    const int wraps = int(inputs_.layout.wraps.size());
    for (int wrap = 0; wrap < wraps; ++wrap) {
      step_.parameters.round(wrap);
      step_.parameters.publish(wrap);
    }
    for (int micro = 0; micro < inputs_.shape.grad_accum; ++micro) {
      step_.units.next_batch(micro);
      for (int unit = 0; unit < head_; ++unit) forward(unit, micro);
      loss(micro);
      for (int unit = head_ - 1; unit >= lowest_; --unit) backward(unit, micro);
    }
    step_.update.measure_gradients();
    step_.update.clip_gradients();
    step_.update.update();
    for (int wrap = 0; wrap < wraps; ++wrap) step_.update.update_whole(wrap);
    std::vector<Bucket> buckets = step_.gradients.buckets();
    return {std::move(step_).finish(), std::move(buckets)};
  }

 private:
  void forward(int unit, int micro) {
    gathers_.around_next(step_.parameters, [&] { step_.units.forward(unit, micro); });
  }

  void loss(int micro) {
    gathers_.around_next(step_.parameters, [&] {
      prefetch_tiles_before(head_, micro);
      step_.units.loss(head_, micro);
    });
    if (is_last(micro) && inputs_.shape.world_size > 1) step_.units.reduce_loss();
    gradients_ready(head_, micro);
  }

  void backward(int unit, int micro) {
    gathers_.around_next(step_.parameters, [&] {
      step_.units.recompute(unit, micro);
      prefetch_tiles_before(unit, micro);
      step_.units.backward(unit, micro);
    });
    gradients_ready(unit, micro);
  }

  // While the last unit makes its gradients, the optimizer's first tiles are fetched.
  void prefetch_tiles_before(int unit, int micro) {
    if (unit == lowest_ && is_last(micro)) step_.offload.prefetch_tiles();
  }

  [[nodiscard]] bool is_last(int micro) const { return micro + 1 == inputs_.shape.grad_accum; }

  // An FSDP unit's gradients leave as soon as its lowest trained unit has made its own.
  void gradients_ready(int unit, int micro) {
    const int wrap = inputs_.place(unit).trained.wrap;
    if (wrap < 0 || unit != inputs_.wrap(wrap).first_unit) return;
    step_.gradients.complete(wrap, micro);
    if (!step_.gradients.departs(micro)) return;
    if (inputs_.strategy.shard_optimizer)
      step_.gradients.scatter(wrap, micro);
    else if (step_.gradients.buckets()[next_bucket_].first_unit == unit)
      step_.gradients.reduce(int(next_bucket_++));
  }

  const StepInputs inputs_;
  const int head_;
  const int lowest_;  // there is no backward below it
  Gathers gathers_;
  size_t next_bucket_ = 0;
  Writers step_;
};

// One rank shards nothing. If it has offloaded its parameters, it holds one FSDP unit's at a time,
// as zero3 does.
const Strategy& strategy_for(const Strategy& strategy, const StepShape& shape) {
  if (shape.world_size > 1) return strategy;
  const bool whole = shape.offload.parameters == Storage::kDevice;
  return whole ? strategies().front() : find_strategy("zero3");
}

}  // namespace

BuiltStep build_train_step(const Architecture& architecture, const ParameterLayout& layout,
                           const Strategy& strategy, const StepShape& shape) {
  const StepInputs inputs{architecture, layout, strategy_for(strategy, shape), shape};
  const auto build_with = [&](std::vector<Recompute> recompute) {
    return TrainStep(inputs, std::move(recompute)).build();
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
  StepShape once = shape;
  once.keep_codes = false;  // each matrix is read once
  once.gather_codec = "";   // what it computes is of the weights as they are saved
  const StepInputs inputs{architecture, layout, strategy_for(strategy, once), once};
  Gathers gathers(inputs, 1, false);
  Writers pass(inputs, std::vector<Recompute>(architecture.units.size()));
  pass.writer.program.optimizer_shards = pass.writer.program.parameter_shards;
  pass.units.next_batch(0);
  for (int unit = 0; unit < head; ++unit)
    gathers.around_next(pass.parameters, [&] { pass.units.forward(unit, 0); });
  gathers.around_next(pass.parameters, [&] { pass.units.evaluate(ending, head); });
  return std::move(pass).finish();
}

}  // namespace gxp
