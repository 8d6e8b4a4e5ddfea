// How the optimizer changes the trainer's tensors.
#include <algorithm>

#include "lib/train/trainer.h"
#include "lib/zero/flat_tensors.h"

namespace gxp {
namespace {

UpdateRange range_of(const StateTensor& tensor, const ConstTensor& gradients) {
  return {tensor.weight, tensor.optimizer, gradients, tensor.spec->decays()};
}

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

UpdateStep Trainer::update_step() const {
  return {result_.step - skipped_, result_.lr, gradient_factor_};
}

const TensorSpec& Trainer::spec_of(const TensorPart& part) const {
  return plan_.architecture.units[size_t(part.unit)].tensors[size_t(part.tensor)];
}

bool Trainer::sees_whole(const TensorPart& part) const {
  const OptimizerSpec& optimizer = plan_.shape.optimizer;
  return optimizer.sees_whole != nullptr &&
         optimizer.sees_whole(plan_.architecture.units[size_t(part.unit)], spec_of(part));
}

// The update's operands for `elements` of the optimizer's flat buffers, which lie in
// own_parts_[own_part].
UpdateRange Trainer::range_in(const Op& op, size_t own_part, const Range& elements) {
  const StepProgram& program = plan_.step.program;
  const TensorPart& part = own_parts_[own_part];
  const size_t skipped =
      elements.begin -
      ShardPlaces::of_parameters(plan_.layout, program.optimizer_shards).part(part).begin;
  const auto take = [&](BufferId buffer, int shards) {
    const size_t begin =
        ShardPlaces::of_parameters(plan_.layout, shards).part(part).begin + skipped;
    return memory_->tensor(buffer).rows(begin, elements.count);
  };
  const auto in_tile = [&](BufferId buffer) {
    return memory_->tensor(buffer).rows(elements.begin - op.update.elements.begin, elements.count);
  };
  UpdateRange range;
  range.decay = plan_.architecture.units[size_t(part.unit)].tensors[size_t(part.tensor)].decays();
  range.gradients = gradients().part(part).rows(skipped, elements.count);
  range.weights = op.update.tile.weights == kNoBuffer
                      ? take(program.weights(), program.weight_shards())
                      : in_tile(op.update.tile.weights);
  for (size_t s = 0; s < kept_places_.size(); ++s) {
    const KeptState& kept = plan_.shape.optimizer.kept[s];
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
  const StepProgram& program = plan_.step.program;
  const Tile& tile = op.update.tile;
  const bool rounds = program.master_weights != kNoBuffer && !offloaded_->is_empty();
  std::vector<UpdateRange> ranges;
  std::vector<Rounding> roundings;
  for (size_t i = 0; i < own_parts_.size(); ++i) {
    const TensorPart& part = own_parts_[i];
    const size_t begin =
        ShardPlaces::of_parameters(plan_.layout, program.optimizer_shards).part(part).begin;
    const Range elements = intersection(op.update.elements, {begin, part.elements.count});
    if (elements.count == 0) continue;
    if (!sees_whole(part) && !spec_of(part).frozen) ranges.push_back(range_in(op, i, elements));
    if (!rounds) continue;
    const int wrap = plan_.layout.wrap_of[size_t(part.unit)];
    const size_t place =
        ShardPlaces::of_parameters(plan_.layout, program.optimizer_shards).wrap(wrap).begin;
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
    stale_ = plan_.step.program.parameter_shards != plan_.step.program.optimizer_shards;
  };
}

template <class Act>
void Trainer::for_own_whole(const Op& op, Act act) {
  const size_t wrap_begin = plan_.layout.wraps[size_t(op.wrap)].flat.begin;
  const std::vector<StateTensor> own = state();
  for (size_t i = 0; i < own.size(); ++i) {
    const TensorPart& part = own_parts_[i];
    if (plan_.layout.wrap_of[size_t(part.unit)] != op.wrap || !sees_whole(part)) continue;
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
  const size_t wrap_begin = plan_.layout.wraps[size_t(op.wrap)].flat.begin;
  for (size_t i = 0; i < all_parts_.size(); ++i) {
    const TensorPart& part = all_parts_[i];
    if (plan_.layout.wrap_of[size_t(part.unit)] != op.wrap || !sees_whole(part)) continue;
    const Range& unit = plan_.layout.units[size_t(part.unit)].flat;
    const Tensor directions =
        memory_->tensor(op.update.directions).rows(unit.begin - wrap_begin, unit.count);
    const auto tensors = unit_tensors(plan_.architecture, plan_.layout, part.unit, directions);
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
  const TensorSpec& spec = plan_.architecture.units[size_t(part.unit)].tensors[size_t(part.tensor)];
  WholeTensor whole{direction, {}, workspace, 1.0};
  if (spec.shape.size() == 2) whole.outputs_per_input = outputs_per_input(plan_.architecture, spec);
  for (size_t s = 0; s < kept_places_.size(); ++s)
    whole.kept.push_back(plan_.shape.optimizer.kept[s].everywhere ? kept_of(s, tensor) : Tensor());
  optimizer_.whole->transform(whole, step);
}

// Rounds this rank's master weights of a wrap into its parameters.
void Trainer::round_parameters(int wrap) {
  const StepProgram& program = plan_.step.program;
  const int shards = program.optimizer_shards;
  const Tensor master = memory_->tensor(program.master_weights);
  const Tensor rounded = own_parameters(wrap);
  const size_t place = ShardPlaces::of_parameters(plan_.layout, shards).wrap(wrap).begin;
  for (const TensorPart& part : own_parts_) {
    if (plan_.layout.wrap_of[size_t(part.unit)] != wrap) continue;
    const size_t begin = ShardPlaces::of_parameters(plan_.layout, shards).part(part).begin;
    const size_t count = part.elements.count;
    rounding_.round(rounded.rows(begin - place, count), master.rows(begin, count), spec_of(part),
                    part.elements.begin, step_ + 1);
  }
}

// The parameters of a wrap that this rank updates.
Tensor Trainer::own_parameters(int wrap) const {
  const StepProgram& program = plan_.step.program;
  const Tensor held = shard_of_wrap(plan_.layout, memory_->tensor(program.parameters), wrap,
                                    program.parameter_shards);
  const int parts = program.optimizer_shards / program.parameter_shards;
  const int part = groups_.shard_of(communicator_.rank(), program.optimizer_shards) % parts;
  const size_t count = held.count() / size_t(parts);
  return held.rows(size_t(part) * count, count);
}

}  // namespace gxp
