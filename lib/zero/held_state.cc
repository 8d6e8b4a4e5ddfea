#include "lib/zero/held_state.h"

namespace gxp {

std::vector<StateTensor> HeldState::weights() const {
  const StepProgram& program = held_.program;
  const ShardPlaces places = ShardPlaces::of_parameters(held_.plan.layout, program.weight_shards());
  const Tensor weights = held_.memory.tensor(program.weights());
  const FlatShards gradients = held_.gradients();
  std::vector<StateTensor> tensors;
  for (const TensorPart& part : held_.own_parts) {
    StateTensor& tensor = tensors.emplace_back();
    tensor.spec = &held_.spec_of(part);
    tensor.elements = part.elements;
    tensor.weight_at = {program.weights(), places.part(part)};
    const Range& place = tensor.weight_at.elements;
    if (place.end() <= weights.count()) tensor.weight = weights.rows(place.begin, place.count);
    tensor.gradient = tensor.spec->frozen ? gradients.at({}) : gradients.part(part);
  }
  return tensors;
}

std::vector<KeptTensor> HeldState::kept() const {
  std::vector<KeptTensor> tensors;
  for (size_t s = 0; s < held_.kept_places.size(); ++s) {
    const KeptState& state = held_.plan.shape.optimizer.kept[s];
    const std::vector<TensorPart>& parts = state.everywhere ? held_.all_parts : held_.own_parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      const TensorSpec& spec = held_.spec_of(parts[i]);
      const HeldRange at{held_.program.optimizer_states[s], held_.kept_places[s][i]};
      if (at.elements.count == 0) continue;
      const Range elements = state.everywhere ? Range{0, at.elements.count} : parts[i].elements;
      tensors.push_back({&spec, &state, state.shape(held_.unit_of(parts[i]), spec), elements, at,
                         state.everywhere});
    }
  }
  return tensors;
}

Range HeldState::own_share(size_t count) const {
  const int holders = held_.groups.world_size / held_.program.optimizer_shards;
  const int number = held_.is_sharded() ? held_.groups.group_of(held_.rank) % holders : held_.rank;
  return owned_range(count, holders, number);
}

void HeldState::read(const HeldRange& at, Memory out) const {
  held_.offloaded.read(at.buffer, at.elements, out);
}

void HeldState::write(const HeldRange& at, ConstMemory in) {
  held_.offloaded.write(at.buffer, at.elements, in);
  parameters_.set_written();
}

void HeldState::fill_weights(
    const std::function<void(const StateTensor&, const Tensor& weight)>& fill) {
  std::vector<float> staged;
  for (const StateTensor& tensor : weights()) {
    const Memory weight = tensor.weight.memory;
    if (weight.data != nullptr && weight.space == MemorySpace::kHost) {
      fill(tensor, tensor.weight);
      continue;
    }
    staged.resize(tensor.elements.count);
    fill(tensor, Tensor(memory_of(staged), DType::kF32, Shape{staged.size()}));
    write(tensor.weight_at, memory_of(staged));
  }
  parameters_.set_written();
}

}  // namespace gxp
