// The trainer's tensors, and how the optimizer changes them.
#include <algorithm>

#include "lib/train/trainer.h"
#include "lib/zero/flat_tensors.h"

namespace gxp {
namespace {

UpdateRange range_of(const StateTensor& tensor, const ConstTensor& gradients) {
  return {tensor.weight, tensor.optimizer, gradients, tensor.spec->decays()};
}

}  // namespace

// `place`: an index of the parts that this kind of state is laid out by.
Tensor Trainer::kept_of(size_t state, size_t place) const {
  const Range& range = kept_places_[state][place];
  const Memory buffer = flat(built_.program.optimizer_states[state]);
  if (range.count == 0 || range.end() * sizeof(float) > buffer.bytes) return {};
  return {buffer.slice(range.begin * sizeof(float), range.count * sizeof(float)), DType::kF32,
          Shape{range.count}};
}

std::vector<StateTensor> Trainer::state() {
  const StepProgram& program = built_.program;
  std::vector<StateTensor> tensors;
  for (size_t i = 0; i < own_parts_.size(); ++i) {
    const TensorPart& part = own_parts_[i];
    const UnitSpec& unit = architecture_.units[size_t(part.unit)];
    StateTensor& tensor = tensors.emplace_back();
    tensor.spec = &unit.tensors[size_t(part.tensor)];
    tensor.elements = part.elements;
    const Range place = ShardPlaces::of_parameters(layout_, program.weight_shards()).part(part);
    tensor.weight_at = {program.weights(), place};
    const Tensor weights = memory_->tensor(program.weights());
    if (place.end() <= weights.count()) tensor.weight = weights.rows(place.begin, place.count);
    tensor.gradient = tensor.spec->frozen ? gradients().memory.rows(0, 0) : gradients().part(part);
    for (size_t s = 0; s < kept_places_.size(); ++s)
      tensor.optimizer.push_back(shape_.optimizer.kept[s].everywhere ? Tensor() : kept_of(s, i));
  }
  return tensors;
}

std::vector<KeptTensor> Trainer::kept_state() {
  std::vector<KeptTensor> tensors;
  for (size_t s = 0; s < kept_places_.size(); ++s) {
    const KeptState& state = shape_.optimizer.kept[s];
    const std::vector<TensorPart>& parts = state.everywhere ? all_parts_ : own_parts_;
    for (size_t i = 0; i < parts.size(); ++i) {
      const UnitSpec& unit = architecture_.units[size_t(parts[i].unit)];
      const TensorSpec& spec = unit.tensors[size_t(parts[i].tensor)];
      const HeldRange at{built_.program.optimizer_states[s], kept_places_[s][i]};
      if (at.elements.count == 0) continue;
      const Range elements = state.everywhere ? Range{0, at.elements.count} : parts[i].elements;
      tensors.push_back({&spec, &state, state.shape(unit, spec), elements, at, state.everywhere});
    }
  }
  return tensors;
}

UpdateStep Trainer::update_step() const {
  return {result_.step - skipped_, result_.lr, gradient_factor_};
}

const TensorSpec& Trainer::spec_of(const TensorPart& part) const {
  return architecture_.units[size_t(part.unit)].tensors[size_t(part.tensor)];
}

bool Trainer::sees_whole(const TensorPart& part) const {
  const OptimizerSpec& optimizer = shape_.optimizer;
  return optimizer.sees_whole != nullptr &&
         optimizer.sees_whole(architecture_.units[size_t(part.unit)], spec_of(part));
}

template <class Act>
void Trainer::for_own_whole(const Op& op, Act act) {
  const size_t wrap_begin = layout_.wraps[size_t(op.wrap)].flat.begin;
  const std::vector<StateTensor> own = state();
  for (size_t i = 0; i < own.size(); ++i) {
    const TensorPart& part = own_parts_[i];
    if (layout_.wrap_of[size_t(part.unit)] != op.wrap || !sees_whole(part)) continue;
    const size_t begin = (part.in_flat - wrap_begin) * sizeof(float);
    const size_t bytes = part.elements.count * sizeof(float);
    act(own[i], Tensor(flat(op.update.directions).slice(begin, bytes), DType::kF32,
                       Shape{part.elements.count}));
  }
}

void Trainer::prepare_update(const Op& op) {
  if (result_.skipped) return;
  for_own_whole(op, [&](const StateTensor& tensor, const Tensor& direction) {
    optimizer_.whole->prepare(direction, range_of(tensor, tensor.gradient), update_step());
  });
}

// Each rank sends its part of the directions, and then transforms all of them. To share that work
// and send the results would be as many bytes again; shards of whole tensors would be N / 3 times
// as large on N ranks, since a matrix of GPT-2's MLP is a third of a block.
void Trainer::gather_directions(const Op& op) {
  const Tensor wrap = memory_->tensor(op.update.directions);
  const bool replicas = op.collective.group == RankGroup::kReplicas;
  const Tensor theirs = replicas ? own_part(wrap, groups_.shard_size) : wrap;
  calls_.all_gather(members(op.collective.group), theirs.memory, theirs.dtype);
}

void Trainer::update_whole(const Op& op) {
  if (result_.skipped) return;
  const size_t wrap_begin = layout_.wraps[size_t(op.wrap)].flat.begin;
  for (size_t i = 0; i < all_parts_.size(); ++i) {
    const TensorPart& part = all_parts_[i];
    if (layout_.wrap_of[size_t(part.unit)] != op.wrap || !sees_whole(part)) continue;
    const Range& unit = layout_.units[size_t(part.unit)].flat;
    const Tensor directions =
        memory_->tensor(op.update.directions).rows(unit.begin - wrap_begin, unit.count);
    const auto tensors = unit_tensors(architecture_, layout_, part.unit, directions);
    transform(i, tensors[size_t(part.tensor)], flat(op.update.workspace), update_step());
  }
  for_own_whole(op, [&](const StateTensor& tensor, const Tensor& direction) {
    optimizer_.whole->apply(range_of(tensor, direction), update_step());
  });
}

// `tensor`: an index of all_parts_.
void Trainer::transform(size_t tensor, const Tensor& direction, Memory workspace,
                        const UpdateStep& step) {
  const TensorPart& part = all_parts_[tensor];
  const TensorSpec& spec = architecture_.units[size_t(part.unit)].tensors[size_t(part.tensor)];
  WholeTensor whole{direction, {}, workspace, 1.0};
  if (spec.shape.size() == 2) whole.outputs_per_input = outputs_per_input(architecture_, spec);
  for (size_t s = 0; s < kept_places_.size(); ++s)
    whole.kept.push_back(shape_.optimizer.kept[s].everywhere ? kept_of(s, tensor) : Tensor());
  optimizer_.whole->transform(whole, step);
}

// What the optimizer has of a wrap, into the part of this rank's parameters that it is of.
void Trainer::round_parameters(int wrap) {
  const StepProgram& program = built_.program;
  const int shards = program.optimizer_shards;
  const Tensor master = memory_->tensor(program.master_weights);
  const Tensor rounded = own_parameters(wrap);
  const size_t place = ShardPlaces::of_parameters(layout_, shards).wrap(wrap).begin;
  for (const TensorPart& part : own_parts_) {
    if (layout_.wrap_of[size_t(part.unit)] != wrap) continue;
    const size_t begin = ShardPlaces::of_parameters(layout_, shards).part(part).begin;
    const size_t count = part.elements.count;
    rounding_.round(rounded.rows(begin - place, count), master.rows(begin, count), spec_of(part),
                    part.elements.begin, step_ + 1);
  }
}

// Of a wrap's parameters, those of which this rank holds the optimizer's state.
Tensor Trainer::own_parameters(int wrap) const {
  const StepProgram& program = built_.program;
  const Tensor held =
      shard_of_wrap(layout_, memory_->tensor(program.parameters), wrap, program.parameter_shards);
  const int parts = program.optimizer_shards / program.parameter_shards;
  const int part = groups_.shard_of(communicator_.rank(), program.optimizer_shards) % parts;
  const size_t count = held.count() / size_t(parts);
  return held.rows(size_t(part) * count, count);
}

}  // namespace gxp
