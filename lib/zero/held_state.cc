#include "lib/zero/held_state.h"

namespace gxp {

std::vector<HeldTensor> HeldState::weights() const {
  const StepProgram& program = held_.program;
  const ShardPlaces places = held_.places(program.weight_shards());
  std::vector<HeldTensor> tensors;
  for (const TensorPart& part : held_.own_parts) {
    const TensorSpec& spec = held_.spec_of(part);
    tensors.push_back({&spec, nullptr, spec.shape, part.elements, false, held_.wrap_of(part),
                       program.weights(), places.part(part).begin});
  }
  return tensors;
}

std::vector<HeldTensor> HeldState::kept() const {
  std::vector<HeldTensor> tensors;
  for (size_t s = 0; s < held_.kept_places.size(); ++s) {
    const KeptState& state = held_.plan.shape.optimizer.kept[s];
    const std::vector<TensorPart>& parts = state.everywhere ? held_.all_parts : held_.own_parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      const TensorSpec& spec = held_.spec_of(parts[i]);
      const Range& place = held_.kept_places[s][i];
      if (place.count == 0) continue;
      tensors.push_back({&spec, &state, state.shape(held_.unit_of(parts[i]), spec),
                         state.everywhere ? Range{0, place.count} : parts[i].elements,
                         state.everywhere, held_.wrap_of(parts[i]),
                         held_.program.optimizer_states[s], place.begin});
    }
  }
  return tensors;
}

Range HeldState::own_share(const HeldTensor& tensor) const {
  const RankGroups& groups = held_.groups;
  const int holders =
      tensor.everywhere ? groups.world_size : groups.world_size / held_.program.optimizer_shards;
  const bool shard = held_.is_sharded() && !tensor.everywhere;
  return owned_range(tensor.elements.count, holders,
                     shard ? groups.group_of(held_.rank) % holders : held_.rank);
}

void HeldState::read(const HeldTensor& tensor, size_t first, Memory out) const {
  held_.offloaded.read(tensor.buffer, {tensor.begin + first, out.bytes / sizeof(float)}, out);
}

void HeldState::write(const HeldTensor& tensor, size_t first, ConstMemory in) {
  const Range place{tensor.begin + first, in.bytes / sizeof(float)};
  held_.offloaded.write(tensor.buffer, place, in);
  // A step rounds offloaded weights as it updates them, so it begins with rounded ones.
  if (tensor.buffer != held_.program.master_weights || held_.offloaded.is_empty()) return;
  const ConstTensor weights(in, DType::kF32, Shape{place.count});
  parameters_.write(tensor.wrap, place.begin,
                    {{}, weights, tensor.spec, tensor.elements.begin + first});
}

void HeldState::fill_weights(
    const std::function<void(const HeldTensor&, const Tensor& weight)>& fill) {
  const Tensor all = held_.memory.tensor(held_.program.weights());
  const bool in_place = all.memory.space == MemorySpace::kHost && held_.offloaded.is_empty();
  std::vector<float> staged;
  for (const HeldTensor& tensor : weights()) {
    const size_t count = tensor.elements.count;
    if (in_place) {
      fill(tensor, all.rows(tensor.begin, count));
      continue;
    }
    staged.resize(count);
    fill(tensor, Tensor(memory_of(staged), DType::kF32, Shape{count}));
    write(tensor, 0, memory_of(staged));
  }
}

}  // namespace gxp
