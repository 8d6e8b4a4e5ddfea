#include "lib/train/weight_update.h"

#include <algorithm>
#include <utility>

namespace gxp {
namespace {

Range intersection(const Range& a, const Range& b) {
  const size_t begin = std::max(a.begin, b.begin);
  const size_t end = std::min(a.end(), b.end());
  return {begin, end > begin ? end - begin : 0};
}

}  // namespace

WeightUpdate::WeightUpdate(const OptimConfig& config, Backend& backend, ShardedMemory& held,
                           Parameters& parameters, const RunningStep& step)
    : held_(held),
      parameters_(parameters),
      step_(step),
      optimizer_(
          make_optimizer({*backend.device, held.lanes[Lane::kCompute], *backend.ops}, config)) {}

std::function<void()> WeightUpdate::bind(const Op& op) {
  if (op.kind == OpKind::kUpdate) return bind_elements(op);
  if (op.kind == OpKind::kPrepareUpdate) return bind_prepare(op);
  if (op.kind == OpKind::kGatherDirections) return bind_gather(op);
  GXP_ASSERT(op.kind == OpKind::kUpdateWhole);
  return bind_whole(op);
}

UpdateStep WeightUpdate::update_step() const {
  return {step_.update, step_.result.lr, step_.gradient_factor};
}

bool WeightUpdate::sees_whole(const TensorPart& part) const {
  const OptimizerSpec& optimizer = held_.plan.shape.optimizer;
  return optimizer.sees_whole != nullptr &&
         optimizer.sees_whole(held_.unit_of(part), held_.spec_of(part));
}

// Offloaded weights are rounded here, as they pass.
std::function<void()> WeightUpdate::bind_elements(const Op& op) {
  const bool rounds = held_.program.master_weights != kNoBuffer && !held_.offloaded.is_empty();
  std::vector<UpdateRange> ranges;
  std::vector<RoundedPart> rounded;
  for (size_t i = 0; i < held_.own_parts.size(); ++i) {
    const TensorPart& part = held_.own_parts[i];
    const Range elements = intersection(op.update.elements, held_.places().part(part));
    if (elements.count == 0) continue;
    const TensorSpec& spec = held_.spec_of(part);
    const UpdateRange range = range_in(op, i, elements);
    if (!sees_whole(part) && !spec.frozen) ranges.push_back(range);
    const size_t first = part.elements.begin + elements.begin - held_.places().part(part).begin;
    if (rounds) rounded.push_back({parameters_in(op, part, elements), range.weights, &spec, first});
  }
  return [this, ranges = std::move(ranges), rounded = std::move(rounded)] {
    if (step_.result.skipped) return;
    for (const UpdateRange& range : ranges) optimizer_.ranges->update(range, update_step());
    for (const RoundedPart& part : rounded)  // for the next step
      parameters_.round(part, step_.result.step + 1);
    parameters_.set_updated();
  };
}

// The update's operands for `elements` of the optimizer's flat buffers, which lie in
// own_parts[own_part].
UpdateRange WeightUpdate::range_in(const Op& op, size_t own_part, const Range& elements) const {
  const StepProgram& program = held_.program;
  const TensorPart& part = held_.own_parts[own_part];
  const size_t skipped = elements.begin - held_.places().part(part).begin;
  const auto in_tile = [&](BufferId buffer) {
    return held_.memory.tensor(buffer).rows(elements.begin - op.update.elements.begin,
                                            elements.count);
  };
  UpdateRange range;
  range.decay = held_.spec_of(part).decays();
  if (!held_.spec_of(part).frozen)
    range.gradients = held_.gradients().part(part).rows(skipped, elements.count);
  const size_t weights = held_.places(program.weight_shards()).part(part).begin;
  range.weights =
      op.update.tile.weights == kNoBuffer
          ? held_.memory.tensor(program.weights()).rows(weights + skipped, elements.count)
          : in_tile(op.update.tile.weights);
  for (size_t s = 0; s < held_.kept_places.size(); ++s) {
    const Range& place = held_.kept_places[s][own_part];
    const BufferId buffer = program.optimizer_states[s];
    if (op.update.tile.number >= 0)
      range.kept.push_back(in_tile(op.update.tile.states[s]));
    else if (held_.plan.shape.optimizer.kept[s].everywhere || place.count == 0)
      range.kept.emplace_back();
    else
      range.kept.push_back(held_.memory.tensor(buffer).rows(place.begin + skipped, elements.count));
  }
  return range;
}

// The parameters of the same elements.
Tensor WeightUpdate::parameters_in(const Op& op, const TensorPart& part,
                                   const Range& elements) const {
  const BufferId tile = op.update.tile.parameters;
  if (tile != kNoBuffer)
    return held_.memory.tensor(tile).rows(elements.begin - op.update.elements.begin,
                                          elements.count);
  const int wrap = held_.wrap_of(part);
  return parameters_.own(wrap).rows(elements.begin - held_.places().wrap(wrap).begin,
                                    elements.count);
}

// The direction of a part that lies in the op's wrap.
Tensor WeightUpdate::direction_of(const Op& op, const TensorPart& part) const {
  const size_t wrap_begin = held_.plan.layout.wraps[size_t(op.wrap)].flat.begin;
  return held_.memory.tensor(op.update.directions)
      .rows(part.in_flat - wrap_begin, part.elements.count);
}

std::vector<WeightUpdate::WholePart> WeightUpdate::own_parts_of(const Op& op) const {
  std::vector<WholePart> parts;
  for (size_t i = 0; i < held_.own_parts.size(); ++i) {
    const TensorPart& part = held_.own_parts[i];
    if (held_.wrap_of(part) == op.wrap && sees_whole(part))
      parts.push_back({range_in(op, i, held_.places().part(part)), direction_of(op, part)});
  }
  return parts;
}

std::function<void()> WeightUpdate::bind_prepare(const Op& op) {
  return [this, parts = own_parts_of(op)] {
    if (step_.result.skipped) return;
    for (const WholePart& part : parts)
      optimizer_.whole->prepare(part.direction, part.range, update_step());
  };
}

// Each rank sends its part of the directions, and then transforms all of them. To share that work
// and send the results would be as many bytes again; shards of whole tensors would be N / 3 times
// as large on N ranks, since a matrix of GPT-2's MLP is a third of a block.
std::function<void()> WeightUpdate::bind_gather(const Op& op) {
  const RankGroup group = op.collective.group;
  const Tensor wrap = held_.memory.tensor(op.update.directions);
  return held_.calls.bind(group, Collective::kAllGather, held_.part_of_group(wrap, group));
}

std::function<void()> WeightUpdate::bind_whole(const Op& op) {
  std::vector<WholeTensor> tensors;
  for (size_t i = 0; i < held_.all_parts.size(); ++i) {
    const TensorPart& part = held_.all_parts[i];
    if (held_.wrap_of(part) == op.wrap && sees_whole(part)) tensors.push_back(whole_tensor(op, i));
  }
  std::vector<WholePart> own = own_parts_of(op);
  for (WholePart& part : own) part.range.gradients = part.direction;
  return [this, tensors = std::move(tensors), own = std::move(own)] {
    if (step_.result.skipped) return;
    for (const WholeTensor& tensor : tensors) optimizer_.whole->transform(tensor, update_step());
    for (const WholePart& part : own) optimizer_.whole->apply(part.range, update_step());
  };
}

// `tensor`: an index of all_parts.
WholeTensor WeightUpdate::whole_tensor(const Op& op, size_t tensor) const {
  const RunPlan& plan = held_.plan;
  const TensorPart& part = held_.all_parts[tensor];
  const TensorSpec& spec = held_.spec_of(part);
  WholeTensor whole{direction_of(op, part).reshape(shape_of(spec)),
                    {},
                    held_.memory.of(op.update.workspace),
                    1.0};
  if (spec.shape.size() == 2) whole.outputs_per_input = outputs_per_input(plan.architecture, spec);
  for (size_t s = 0; s < held_.kept_places.size(); ++s) {
    Tensor& kept = whole.kept.emplace_back();
    if (!plan.shape.optimizer.kept[s].everywhere) continue;
    const Range& place = held_.kept_places[s][tensor];
    if (place.count > 0)
      kept = held_.memory.tensor(held_.program.optimizer_states[s]).rows(place.begin, place.count);
  }
  return whole;
}

}  // namespace gxp
