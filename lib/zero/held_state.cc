#include "lib/zero/held_state.h"

#include <algorithm>
#include <vector>

namespace gxp {

std::vector<HeldTensor> HeldState::weights() const {
  const ShardRanges own = sharded_.places();
  std::vector<HeldTensor> tensors;
  for (const TensorPart& part : sharded_.own_parts) {
    const TensorSpec& spec = sharded_.spec_of(part);
    const int wrap = sharded_.wrap_of(part);
    tensors.push_back({.spec = &spec,
                       .shape = spec.shape,
                       .elements = part.elements,
                       .wrap = wrap,
                       .buffer = sharded_.weights_of(part),
                       .begin = sharded_.place_of_weights(part).begin,
                       .in_own = own.part(part).begin - own.wrap(wrap).begin});
  }
  return tensors;
}

std::vector<HeldTensor> HeldState::kept() const {
  std::vector<HeldTensor> tensors;
  for (size_t s = 0; s < sharded_.kept_places.size(); ++s) {
    const KeptState& state = sharded_.plan.shape.optimizer.kept[s];
    const std::vector<TensorPart>& parts =
        state.everywhere ? sharded_.all_parts : sharded_.own_parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      const TensorSpec& spec = sharded_.spec_of(parts[i]);
      const Range& place = sharded_.kept_places[s][i];
      if (place.count == 0) continue;
      tensors.push_back({&spec, &state, state.shape(sharded_.unit_of(parts[i]), spec),
                         state.everywhere ? Range{0, place.count} : state.of(parts[i].elements),
                         state.everywhere, sharded_.wrap_of(parts[i]),
                         sharded_.program.optimizer_states[s], place.begin});
    }
  }
  return tensors;
}

std::vector<HeldTensor> HeldState::residuals() const {
  static constexpr KeptState kResiduals{
      .name = "codec residuals", .role = "codec_residual", .shape = nullptr};
  const size_t hosts = size_t(sharded_.groups.hosts);
  std::vector<HeldTensor> tensors;
  for (const TensorPart& part : sharded_.all_parts) {
    const TensorSpec& spec = sharded_.spec_of(part);
    if (spec.frozen) continue;
    std::vector<size_t> shape = spec.shape;
    shape.insert(shape.begin(), hosts);
    const size_t copy = size_t(host()) * part.elements.count;
    for (const ResidualRange& range : sharded_.compressed.residuals()) {
      const Range own = intersection(range.flat, {part.in_flat, part.elements.count});
      if (own.count == 0) continue;
      tensors.push_back({.spec = &spec,
                         .state = &kResiduals,
                         .shape = shape,
                         .elements = {copy + own.begin - part.in_flat, own.count},
                         .wrap = sharded_.wrap_of(part),
                         .buffer = sharded_.program.residuals,
                         .begin = range.at + own.begin - range.flat.begin,
                         .alone = true});
    }
  }
  return tensors;
}

void HeldState::clear_residuals() {
  if (sharded_.program.residuals == kNoBuffer) return;
  const size_t count = sharded_.memory.of(sharded_.program.residuals).bytes / sizeof(float);
  constexpr size_t kAtATime = size_t{1} << 20;
  const std::vector<float> zeros(std::min(count, kAtATime));
  for (size_t first = 0; first < count; first += kAtATime) {
    const Range range{first, std::min(kAtATime, count - first)};
    sharded_.offloaded.write(sharded_.program.residuals, range,
                             memory_of(zeros).slice(0, range.count * sizeof(float)));
  }
}

Range HeldState::own_share(const HeldTensor& tensor) const {
  if (tensor.alone) return {0, tensor.elements.count};
  const RankGroups& groups = sharded_.groups;
  const int holders =
      tensor.everywhere ? groups.world_size : groups.world_size / sharded_.program.optimizer_shards;
  const bool shard = sharded_.is_sharded() && !tensor.everywhere;
  return owned_range(tensor.elements.count, holders,
                     shard ? groups.group_of(sharded_.rank) % holders : sharded_.rank);
}

void HeldState::read(const HeldTensor& tensor, size_t first, Memory out) const {
  const size_t count = out.bytes / size_of(tensor.dtype());
  if (are_halves(tensor))
    return parameters_.read(tensor.wrap, tensor.in_own + first, {out, DType::kF32, Shape{count}});
  sharded_.offloaded.read(tensor.buffer, {tensor.begin + first, count}, out);
}

void HeldState::write(const HeldTensor& tensor, size_t first, ConstMemory in) {
  const size_t count = in.bytes / size_of(tensor.dtype());
  const bool is_rounded = are_halves(tensor);
  if (!is_rounded) sharded_.offloaded.write(tensor.buffer, {tensor.begin + first, count}, in);
  // A step rounds offloaded weights as it updates them, so it begins with rounded ones.
  const bool begins_rounded =
      tensor.buffer == sharded_.program.master_weights && !sharded_.offloaded.is_empty();
  if (!is_rounded && !begins_rounded) return;
  const ConstTensor weights(in, DType::kF32, Shape{count});
  parameters_.write(tensor.wrap, tensor.in_own + first,
                    {{}, weights, tensor.spec, tensor.elements.begin + first});
}

void HeldState::fill_weights(
    const std::function<void(const HeldTensor&, const Tensor& weight)>& fill) {
  std::vector<float> staged;
  for (const HeldTensor& tensor : weights()) {
    const size_t count = tensor.elements.count;
    const Tensor all = sharded_.tensor(tensor.buffer);
    if (all.memory.space == MemorySpace::kHost && sharded_.offloaded.is_empty() &&
        !are_halves(tensor)) {
      fill(tensor, all.rows(tensor.begin, count));
      continue;
    }
    staged.resize(count);
    fill(tensor, Tensor(memory_of(staged), DType::kF32, Shape{count}));
    write(tensor, 0, memory_of(staged));
  }
}

}  // namespace gxp
