// The trainer's update in pieces, and what of its state lies beside the device.
#include <algorithm>

#include "lib/train/trainer.h"

namespace gxp {
namespace {

constexpr size_t kStagedElements = size_t{1} << 20;  // rounded at a time

Range intersection(const Range& a, const Range& b) {
  const size_t begin = std::max(a.begin, b.begin);
  const size_t end = std::min(a.end(), b.end());
  return {begin, end > begin ? end - begin : 0};
}

// A rounded part of a tensor's weights.
struct Rounding {
  Tensor to;
  Tensor from;
  const TensorSpec* tensor;
  size_t first;  // of the tensor's elements
};

}  // namespace

// Of own part `own_part`, `elements` of the optimizer's buffers.
UpdateRange Trainer::range_in(const Op& op, size_t own_part, const Range& elements) {
  const StepProgram& program = built_.program;
  const TensorPart& part = own_parts_[own_part];
  const size_t skipped =
      elements.begin -
      ShardPlaces::of_parameters(layout_, program.optimizer_shards).part(part).begin;
  const auto take = [&](BufferId buffer, int shards) {
    const size_t begin = ShardPlaces::of_parameters(layout_, shards).part(part).begin + skipped;
    return memory_->tensor(buffer).rows(begin, elements.count);
  };
  const auto in_tile = [&](BufferId buffer) {
    return memory_->tensor(buffer).rows(elements.begin - op.update.elements.begin, elements.count);
  };
  UpdateRange range;
  range.decay = architecture_.units[size_t(part.unit)].tensors[size_t(part.tensor)].decays();
  range.gradients = gradients().part(part).rows(skipped, elements.count);
  range.weights = op.update.tile.weights == kNoBuffer
                      ? take(program.weights(), program.weight_shards())
                      : in_tile(op.update.tile.weights);
  for (size_t s = 0; s < kept_places_.size(); ++s) {
    const KeptState& kept = shape_.optimizer.kept[s];
    if (op.update.tile.number >= 0)
      range.kept.push_back(in_tile(op.update.tile.states[s]));
    else if (kept.of_all)
      range.kept.push_back(
          memory_->tensor(program.optimizer_states[s]).rows(elements.begin, elements.count));
    else
      range.kept.push_back(kept.everywhere ? Tensor() : kept_of(s, own_part));
  }
  return range;
}

// All tensors are found before the first step. Offloaded weights are rounded here, as they pass.
std::function<void()> Trainer::bind_update(const Op& op) {
  const StepProgram& program = built_.program;
  const Tile& tile = op.update.tile;
  const bool rounds = program.master_weights != kNoBuffer && !offloaded_->is_empty();
  std::vector<UpdateRange> ranges;
  std::vector<Rounding> roundings;
  for (size_t i = 0; i < own_parts_.size(); ++i) {
    const TensorPart& part = own_parts_[i];
    const size_t begin =
        ShardPlaces::of_parameters(layout_, program.optimizer_shards).part(part).begin;
    const Range elements = intersection(op.update.elements, {begin, part.elements.count});
    if (elements.count == 0) continue;
    if (!sees_whole(part) && !spec_of(part).frozen) ranges.push_back(range_in(op, i, elements));
    if (!rounds) continue;
    const int wrap = layout_.wrap_of[size_t(part.unit)];
    const size_t place =
        ShardPlaces::of_parameters(layout_, program.optimizer_shards).wrap(wrap).begin;
    const size_t in_tile = elements.begin - op.update.elements.begin;
    const Tensor from =
        tile.weights == kNoBuffer
            ? memory_->tensor(program.weights()).rows(elements.begin, elements.count)
            : memory_->tensor(tile.weights).rows(in_tile, elements.count);
    const Tensor to = tile.parameters == kNoBuffer
                          ? own_parameters(wrap).rows(elements.begin - place, elements.count)
                          : memory_->tensor(tile.parameters).rows(in_tile, elements.count);
    roundings.push_back({to, from, &spec_of(part), part.elements.begin + elements.begin - begin});
  }
  return [this, ranges = std::move(ranges), roundings = std::move(roundings)] {
    if (result_.skipped) return;
    for (const UpdateRange& range : ranges) optimizer_.ranges->update(range, update_step());
    for (const Rounding& part : roundings)  // for the next step
      rounding_.round(part.to, part.from, *part.tensor, part.first, result_.step + 1);
    stale_ = built_.program.parameter_shards != built_.program.optimizer_shards;
  };
}

// What was left out of a skipped step is as it is stored. Whether it was is known to a store, which
// comes after an update, and not to a fetch.
std::function<void()> Trainer::bind_offload(const Op& op) {
  uint64_t bytes = 0;
  for (const Move& move : op.moves) bytes += move.bytes;
  return [this, bytes, stores = op.kind == OpKind::kStore,
          copy = offloaded_->bind(op, built_.program, *memory_)] {
    if (stores && result_.skipped) return;
    copy();
    result_.offload_bytes += bytes;
  };
}

void Trainer::read(const HeldRange& held, Memory out) {
  offloaded_->read(held.buffer, held.elements, out);
}

void Trainer::write(const HeldRange& held, ConstMemory in) {
  offloaded_->write(held.buffer, held.elements, in);
  unrounded_ = built_.program.master_weights != kNoBuffer && !offloaded_->is_empty();
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
  unrounded_ = built_.program.master_weights != kNoBuffer && !offloaded_->is_empty();
}

// Of all own parameters, from master weights that were changed between steps.
void Trainer::round_offloaded() {
  const StepProgram& program = built_.program;
  std::vector<float> staged(kStagedElements);
  std::vector<uint16_t> halves(kStagedElements);
  for (const TensorPart& part : own_parts_) {
    const int wrap = layout_.wrap_of[size_t(part.unit)];
    const size_t begin =
        ShardPlaces::of_parameters(layout_, program.optimizer_shards).part(part).begin;
    const size_t place =
        ShardPlaces::of_parameters(layout_, program.optimizer_shards).wrap(wrap).begin;
    for (size_t done = 0; done < part.elements.count; done += kStagedElements) {
      const Range piece{begin + done, std::min(kStagedElements, part.elements.count - done)};
      const Tensor from(memory_of(staged).slice(0, piece.count * sizeof(float)), DType::kF32,
                        Shape{piece.count});
      const Tensor to(memory_of(halves).slice(0, piece.count * sizeof(uint16_t)),
                      architecture_.compute, Shape{piece.count});
      offloaded_->read(program.master_weights, piece, from.memory);
      host_rounding_.round(to, from, spec_of(part), part.elements.begin + done, step_ + 1);
      if (shape_.offload.parameters != Storage::kDevice)
        offloaded_->write(program.parameters, piece, to.memory);
      else
        backend_.device->copy(own_parameters(wrap).rows(piece.begin - place, piece.count).memory,
                              to.memory);
    }
  }
  unrounded_ = false;
}

}  // namespace gxp
