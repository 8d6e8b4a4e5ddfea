// The trainer's tensors as checkpoints and weight files see them: by name, wherever they lie.
#include "lib/train/trainer.h"

namespace gxp {

// `state`: an index of OptimizerSpec::kept; `place`: of the parts that it is laid out by.
Tensor Trainer::kept_of(size_t state, size_t place) const {
  const Range& range = kept_places_[state][place];
  const Memory buffer = flat(plan_.step.program.optimizer_states[state]);
  if (range.count == 0 || range.end() * sizeof(float) > buffer.bytes) return {};
  return {buffer.slice(range.begin * sizeof(float), range.count * sizeof(float)), DType::kF32,
          Shape{range.count}};
}

std::vector<StateTensor> Trainer::state() {
  const StepProgram& program = plan_.step.program;
  std::vector<StateTensor> tensors;
  for (size_t i = 0; i < own_parts_.size(); ++i) {
    const TensorPart& part = own_parts_[i];
    const UnitSpec& unit = plan_.architecture.units[size_t(part.unit)];
    StateTensor& tensor = tensors.emplace_back();
    tensor.spec = &unit.tensors[size_t(part.tensor)];
    tensor.elements = part.elements;
    const Range place =
        ShardPlaces::of_parameters(plan_.layout, program.weight_shards()).part(part);
    tensor.weight_at = {program.weights(), place};
    const Tensor weights = memory_->tensor(program.weights());
    if (place.end() <= weights.count()) tensor.weight = weights.rows(place.begin, place.count);
    tensor.gradient = tensor.spec->frozen ? gradients().memory.rows(0, 0) : gradients().part(part);
    for (size_t s = 0; s < kept_places_.size(); ++s)
      tensor.optimizer.push_back(plan_.shape.optimizer.kept[s].everywhere ? Tensor()
                                                                          : kept_of(s, i));
  }
  return tensors;
}

std::vector<KeptTensor> Trainer::kept_state() {
  std::vector<KeptTensor> tensors;
  for (size_t s = 0; s < kept_places_.size(); ++s) {
    const KeptState& state = plan_.shape.optimizer.kept[s];
    const std::vector<TensorPart>& parts = state.everywhere ? all_parts_ : own_parts_;
    for (size_t i = 0; i < parts.size(); ++i) {
      const UnitSpec& unit = plan_.architecture.units[size_t(parts[i].unit)];
      const TensorSpec& spec = unit.tensors[size_t(parts[i].tensor)];
      const HeldRange at{plan_.step.program.optimizer_states[s], kept_places_[s][i]};
      if (at.elements.count == 0) continue;
      const Range elements = state.everywhere ? Range{0, at.elements.count} : parts[i].elements;
      tensors.push_back({&spec, &state, state.shape(unit, spec), elements, at, state.everywhere});
    }
  }
  return tensors;
}

Range Trainer::own_share(size_t count) const {
  const int holders = groups_.world_size / plan_.step.program.optimizer_shards;
  const int rank = communicator_.rank();
  return owned_range(count, holders, is_sharded() ? groups_.group_of(rank) % holders : rank);
}

void Trainer::read(const HeldRange& held, Memory out) {
  offloaded_->read(held.buffer, held.elements, out);
}

void Trainer::write(const HeldRange& held, ConstMemory in) {
  offloaded_->write(held.buffer, held.elements, in);
  unrounded_ = plan_.step.program.master_weights != kNoBuffer && !offloaded_->is_empty();
}

void Trainer::fill_weights(
    const std::function<void(const StateTensor&, const Tensor& weight)>& fill) {
  std::vector<float> staged;
  for (const StateTensor& tensor : state()) {
    const Memory weight = tensor.weight.memory;
    if (weight.data != nullptr && weight.space == MemorySpace::kHost) {
      fill(tensor, tensor.weight);
      continue;
    }
    staged.resize(tensor.elements.count);
    fill(tensor, Tensor(memory_of(staged), DType::kF32, Shape{staged.size()}));
    write(tensor.weight_at, memory_of(staged));
  }
  unrounded_ = plan_.step.program.master_weights != kNoBuffer && !offloaded_->is_empty();
}

}  // namespace gxp
