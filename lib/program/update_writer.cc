#include "lib/program/update_writer.h"

#include <algorithm>

#include "lib/shard/layout.h"

namespace gxp {

void UpdateWriter::make_buffers() {
  StepProgram& program = writer_.program;
  if (inputs_.architecture.compute != DType::kF32)
    program.master_weights =
        offload_.make_optimizer_buffer("master weights", offload_.optimizer_count(), DType::kF32);
  for (const KeptState& state : inputs_.shape.optimizer.kept) {
    const size_t count =
        state_count(inputs_.architecture, inputs_.layout, state, program.optimizer_shards);
    program.optimizer_states.push_back(
        offload_.make_optimizer_buffer(std::string(state.name), count, state.dtype));
  }
  program.loss_sum =
      writer_.persistent("loss sum", MemoryKind::kCommunication, 2 * sizeof(double), DType::kF64);
  program.norm_parts = writer_.persistent("norm parts", MemoryKind::kCommunication,
                                          inputs_.norm_part_count() * sizeof(double), DType::kF64);
}

void UpdateWriter::measure_gradients() {
  const StepProgram& program = writer_.program;
  Op& op = writer_.emit(OpKind::kMeasureGradients, Lane::kCompute);
  writer_.read(op, program.gradients);
  writer_.write(op, program.norm_parts);
  if (program.optimizer_shards == 1) return;
  writer_.write(writer_.emit_collective(OpKind::kGatherNorm, -1,
                                        {.count = inputs_.norm_part_count(), .dtype = DType::kF64}),
                program.norm_parts);
}

void UpdateWriter::clip_gradients() {
  Op& op = writer_.emit(OpKind::kClipGradients, Lane::kCompute);
  writer_.read(op, writer_.program.gradients);
  writer_.read(op, writer_.program.loss_sum);
  writer_.read(op, writer_.program.norm_parts);
}

void UpdateWriter::update() {
  if (offload_.resident() > 0) update_elements({0, offload_.resident()}, {});
  for (int tile = 0; tile < offload_.tile_count(); ++tile) {
    update_elements(offload_.elements_of_tile(tile), offload_.tile_of(tile));
    offload_.exchange_tile(tile);
  }
}

void UpdateWriter::update_elements(const Range& elements, const Tile& tile) {
  const StepProgram& program = writer_.program;
  Op& op = writer_.emit(OpKind::kUpdate, Lane::kCompute);
  op.update.elements = elements;
  op.update.tile = tile;
  writer_.read(op, program.gradients);
  writer_.write(op, program.weights());
  for (const BufferId id : program.optimizer_states)
    if (tile.number < 0) writer_.write(op, id);
  offload_.write_tile(op, tile);
  if (offload_.offloads_optimizer())
    writer_.write(op, program.parameters);  // rounded, or the weights
}

void UpdateWriter::update_whole(int wrap) {
  const StepProgram& program = writer_.program;
  const size_t workspace = workspace_of(wrap);
  if (workspace == 0) return;
  const size_t bytes = inputs_.wrap(wrap).flat.count * sizeof(float);
  const BufferId directions =
      writer_.buffer("directions of " + inputs_.name_of(wrap), MemoryKind::kWorkspace, bytes);
  Op& prepare = writer_.emit_on_wrap(OpKind::kPrepareUpdate, Lane::kCompute, wrap);
  prepare.update.directions = directions;
  writer_.read(prepare, program.gradients);
  for (const BufferId id : program.optimizer_states) writer_.write(prepare, id);
  writer_.write(prepare, directions);
  if (program.optimizer_shards > inputs_.groups.shard_size)
    gather_directions(wrap, RankGroup::kReplicas, directions);
  if (program.optimizer_shards > 1) gather_directions(wrap, RankGroup::kShards, directions);
  Op& change = writer_.emit_on_wrap(OpKind::kUpdateWhole, Lane::kCompute, wrap);
  change.update.directions = directions;
  change.update.workspace =
      writer_.buffer("optimizer workspace", MemoryKind::kWorkspace, workspace);
  writer_.write(change, directions);
  writer_.write(change, change.update.workspace);
  for (const BufferId id : program.optimizer_states) writer_.write(change, id);
  writer_.write(change, program.weights());
}

size_t UpdateWriter::workspace_of(int wrap) const {
  const FsdpUnit& place = inputs_.wrap(wrap);
  size_t most = 0;
  for (int unit = place.first_unit; unit <= place.last_unit; ++unit) {
    const UnitSpec& spec = inputs_.unit(unit);
    if (needs_unsharded(inputs_.shape.optimizer, spec))
      most = std::max(most, workspace_bytes(inputs_.shape.optimizer, spec));
  }
  return most;
}

void UpdateWriter::gather_directions(int wrap, RankGroup group, BufferId directions) {
  Op& op = writer_.emit_collective(OpKind::kGatherDirections, wrap,
                                   {group, inputs_.count_of_members(wrap, group)});
  op.update.directions = directions;
  writer_.write(op, directions);
}

}  // namespace gxp
