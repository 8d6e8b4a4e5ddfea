#include "lib/train/step/weight_update.h"

#include <utility>

namespace gxp {
WeightUpdate::WeightUpdate(const RunConfig& config, Backend& backend, ShardedMemory& sharded,
                           Parameters& parameters, const RunningStep& step)
    : sharded_(sharded),
      parameters_(parameters),
      step_(step),
      decay_vectors_(config.optim.decay_vectors),
      seed_(config.train.seed),
      optimizer_(make_optimizer({*backend.device, sharded.lanes[Lane::kCompute], *backend.ops},
                                config.optim)) {}

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

bool WeightUpdate::needs_unsharded(const TensorPart& part) const {
  const OptimizerSpec& optimizer = sharded_.plan.shape.optimizer;
  return optimizer.needs_unsharded != nullptr &&
         optimizer.needs_unsharded(sharded_.unit_of(part), sharded_.spec_of(part));
}

// Offloaded weights are rounded here, while their tile is on the device.
std::function<void()> WeightUpdate::bind_elements(const Op& op) {
  const bool rounds =
      sharded_.program.master_weights != kNoBuffer && !sharded_.offloaded.is_empty();
  std::vector<UpdateRange> ranges;
  std::vector<RoundedPart> rounded;
  for (size_t i = 0; i < sharded_.own_parts.size(); ++i) {
    const TensorPart& part = sharded_.own_parts[i];
    const TensorSpec& spec = sharded_.spec_of(part);
    if (spec.frozen) continue;
    const Range elements = intersection(op.update.elements, sharded_.places().part(part));
    if (elements.count == 0) continue;
    const UpdateRange range = range_in(op, i, elements);
    if (!needs_unsharded(part)) ranges.push_back(range);
    const size_t first = part.elements.begin + elements.begin - sharded_.places().part(part).begin;
    if (rounds) rounded.push_back({parameters_in(op, part, elements), range.weights, &spec, first});
  }
  return [this, ranges = std::move(ranges), rounded = std::move(rounded)] {
    if (step_.result.skipped) return;
    if (!ranges.empty()) optimizer_.ranges->update(ranges, update_step());
    for (const RoundedPart& part : rounded)  // for the next step
      parameters_.round(part, step_.result.step + 1);
    parameters_.set_updated();
  };
}

// The update's operands for `elements` of the optimizer's flat buffers, which lie in
// own_parts[own_part], which is trained.
UpdateRange WeightUpdate::range_in(const Op& op, size_t own_part, const Range& elements) const {
  const StepProgram& program = sharded_.program;
  const TensorPart& part = sharded_.own_parts[own_part];
  const size_t skipped = elements.begin - sharded_.places().part(part).begin;
  const auto in_tile = [&](BufferId buffer) {
    return sharded_.tensor(buffer).rows(elements.begin - op.update.elements.begin, elements.count);
  };
  UpdateRange range;
  range.decay = decay_vectors_ || sharded_.spec_of(part).decays();
  range.key = rounding_key(seed_, sharded_.spec_of(part));
  range.first = part.elements.begin + skipped;
  range.gradients = sharded_.gradients().part(part).rows(skipped, elements.count);
  const size_t weights = sharded_.place_of_weights(part).begin;
  range.weights = op.update.tile.weights == kNoBuffer
                      ? sharded_.tensor(program.weights()).rows(weights + skipped, elements.count)
                      : in_tile(op.update.tile.weights);
  for (size_t s = 0; s < sharded_.kept_places.size(); ++s) {
    const KeptState& state = sharded_.plan.shape.optimizer.kept[s];
    const Range& place = sharded_.kept_places[s][own_part];
    const Range kept = state.of({skipped, elements.count});
    const BufferId buffer = program.optimizer_states[s];
    if (op.update.tile.number >= 0)
      range.kept.push_back(in_tile(op.update.tile.states[s]));
    else if (state.everywhere || place.count == 0)
      range.kept.emplace_back();
    else
      range.kept.push_back(sharded_.tensor(buffer).rows(place.begin + kept.begin, kept.count));
  }
  return range;
}

// The parameters of the same elements.
Tensor WeightUpdate::parameters_in(const Op& op, const TensorPart& part,
                                   const Range& elements) const {
  const BufferId tile = op.update.tile.parameters;
  if (tile != kNoBuffer)
    return sharded_.tensor(tile).rows(elements.begin - op.update.elements.begin, elements.count);
  const int wrap = sharded_.wrap_of(part);
  return parameters_.own(wrap).rows(elements.begin - sharded_.places().wrap(wrap).begin,
                                    elements.count);
}

// The direction of a part that lies in the op's FSDP unit.
Tensor WeightUpdate::direction_of(const Op& op, const TensorPart& part) const {
  const size_t wrap_begin = sharded_.plan.layout.wraps[size_t(op.wrap)].flat.begin;
  return sharded_.tensor(op.update.directions).rows(part.in_flat - wrap_begin, part.elements.count);
}

std::vector<WeightUpdate::WholePart> WeightUpdate::own_parts_of(const Op& op) const {
  std::vector<WholePart> parts;
  for (size_t i = 0; i < sharded_.own_parts.size(); ++i) {
    const TensorPart& part = sharded_.own_parts[i];
    if (sharded_.wrap_of(part) == op.wrap && needs_unsharded(part))
      parts.push_back({range_in(op, i, sharded_.places().part(part)), direction_of(op, part)});
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
  const Tensor wrap = sharded_.tensor(op.update.directions);
  return sharded_.calls.bind(group, Collective::kAllGather, sharded_.part_of_group(wrap, group));
}

std::function<void()> WeightUpdate::bind_whole(const Op& op) {
  std::vector<WholeTensor> tensors;
  for (size_t i = 0; i < sharded_.all_parts.size(); ++i) {
    const TensorPart& part = sharded_.all_parts[i];
    if (sharded_.wrap_of(part) == op.wrap && needs_unsharded(part))
      tensors.push_back(whole_tensor(op, i));
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
  const RunPlan& plan = sharded_.plan;
  const TensorPart& part = sharded_.all_parts[tensor];
  const TensorSpec& spec = sharded_.spec_of(part);
  const Memory workspace = sharded_.memory.of(op.update.workspace);
  WholeTensor whole{direction_of(op, part).reshape(shape_of(spec)), {}, workspace, 1.0};
  if (spec.shape.size() == 2) whole.outputs_per_input = outputs_per_input(plan.architecture, spec);
  for (size_t s = 0; s < sharded_.kept_places.size(); ++s) {
    Tensor& kept = whole.kept.emplace_back();
    if (!plan.shape.optimizer.kept[s].everywhere) continue;
    const Range& place = sharded_.kept_places[s][tensor];
    if (place.count > 0)
      kept = sharded_.tensor(sharded_.program.optimizer_states[s]).rows(place.begin, place.count);
  }
  return whole;
}

}  // namespace gxp
