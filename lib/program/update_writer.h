// How a step program ends: the gradients' norm, and the optimizer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/program/offload_writer.h"
#include "lib/shard/layout.h"

namespace gxp {

class UpdateWriter : protected OffloadWriter {
 protected:
  UpdateWriter(const Architecture& architecture, const ParameterLayout& layout,
               const StepShape& shape, std::vector<Recompute> recompute)
      : OffloadWriter(shape, std::move(recompute)),
        architecture_(architecture),
        layout_(layout),
        shape_(shape),
        groups_(groups_of(shape)) {}

  void measure_gradients() {
    Op& op = emit(OpKind::kMeasureGradients, Lane::kCompute, -1, -1);
    read(op, program_.gradients);
    write(op, program_.norm_parts);
    if (program_.optimizer_shards == 1) return;
    write(
        emit_collective(OpKind::kGatherNorm, -1, RankGroup::kWorld, norm_part_count(), DType::kF64),
        program_.norm_parts);
  }

  void clip_gradients() {
    Op& op = emit(OpKind::kClipGradients, Lane::kCompute, -1, -1);
    read(op, program_.gradients);
    read(op, program_.loss_sum);
    read(op, program_.norm_parts);
  }

  void prefetch_update() { prefetch_tiles(optimizer_count()); }

  // What stays on the device, while the first tiles come; then tile by tile.
  void update() {
    const size_t count = optimizer_count();
    if (resident(count) > 0) update_elements({0, resident(count)}, {});
    for (int tile = 0; tile < tile_count(count); ++tile) {
      update_elements(elements_of_tile(count, tile), tile_of(tile));
      store_tile(count, tile);
      fetch_tile(count, tile + kTileBuffers);
    }
  }

  // Of the wrap's tensors that the optimizer sees whole.
  void update_whole(int wrap) {
    const size_t workspace = workspace_of(wrap);
    if (workspace == 0) return;
    const size_t bytes = layout_.wraps[size_t(wrap)].flat.count * sizeof(float);
    const BufferId directions =
        buffer("directions of " + name_of(wrap), MemoryKind::kWorkspace, bytes);
    Op& prepare = emit_on_wrap(OpKind::kPrepareUpdate, Lane::kCompute, wrap);
    read(prepare, program_.gradients);
    for (const BufferId id : program_.optimizer_states) write(prepare, id);
    prepare.scratch = {directions};
    write(prepare, directions);
    if (program_.optimizer_shards > groups_.shard_size)
      gather_directions(wrap, RankGroup::kReplicas, directions);
    if (program_.optimizer_shards > 1) gather_directions(wrap, RankGroup::kShards, directions);
    Op& update = emit_on_wrap(OpKind::kUpdateWhole, Lane::kCompute, wrap);
    update.scratch = {directions, buffer("optimizer workspace", MemoryKind::kWorkspace, workspace)};
    for (const BufferId id : update.scratch) write(update, id);
    for (const BufferId id : program_.optimizer_states) write(update, id);
    write(update, program_.weights());
  }

  // "h.0", "h.0 to h.3"
  [[nodiscard]] std::string name_of(int wrap) const {
    const Wrap& place = layout_.wraps[size_t(wrap)];
    const std::string& first = architecture_.units[size_t(place.first_unit)].name;
    if (place.first_unit == place.last_unit) return first;
    return first + " to " + architecture_.units[size_t(place.last_unit)].name;
  }

  [[nodiscard]] size_t norm_part_count() const {
    return size_t(shape_.norm_parts > 0 ? shape_.norm_parts : shape_.world_size);
  }
  // Elements of the optimizer's flat buffers.
  [[nodiscard]] size_t optimizer_count() const {
    return layout_.count / size_t(program_.optimizer_shards);
  }
  // Elements of a wrap that a shard group has, or the replicas of one of its shards.
  [[nodiscard]] size_t members_part(int wrap, RankGroup group) const {
    const size_t count = layout_.wraps[size_t(wrap)].flat.count;
    return group == RankGroup::kShards ? count : count / size_t(groups_.shard_size);
  }

  // This rank's part of the operation's wrap, in a buffer of one of `shards` shards.
  void use_shard(Op& op, BufferId id, int shards, bool writes) {
    use_elements(op, id, place_in_shard(layout_.wraps[size_t(op.wrap)].flat, shards), writes);
  }

  // A unit's part of its wrap's parameters or gradients, which `wrap` has.
  FlatView use_unit(Op& op, const FlatView& wrap, int unit, bool writes) {
    const Range& flat = layout_.units[size_t(unit)].flat;
    const FlatView own = {wrap.buffer,
                          wrap.begin + flat.begin - layout_.wrap_of_unit(unit).flat.begin};
    use_view(op, own, flat, writes);
    return own;
  }

  const Architecture& architecture_;
  const ParameterLayout& layout_;
  const StepShape& shape_;
  const RankGroups groups_;

 private:
  void update_elements(const Range& elements, const Tile& tile) {
    Op& op = emit(OpKind::kUpdate, Lane::kCompute, -1, -1);
    op.elements = elements;
    op.tile = tile;
    read(op, program_.gradients);
    write(op, program_.weights());
    for (const BufferId id : program_.optimizer_states)
      if (tile.number < 0) write(op, id);
    write_tile(op, tile);
    if (offloads_optimizer()) write(op, program_.parameters);  // rounded, or the weights
  }

  // What the optimizer works with on the largest of the wrap's tensors that it sees whole; 0: it
  // sees none.
  [[nodiscard]] size_t workspace_of(int wrap) const {
    const Wrap& place = layout_.wraps[size_t(wrap)];
    size_t most = 0;
    for (int unit = place.first_unit; unit <= place.last_unit; ++unit) {
      const UnitSpec& spec = architecture_.units[size_t(unit)];
      if (sees_whole(shape_.optimizer, spec))
        most = std::max(most, workspace_bytes(shape_.optimizer, spec));
    }
    return most;
  }

  void gather_directions(int wrap, RankGroup group, BufferId directions) {
    Op& op = emit_collective(OpKind::kGatherDirections, wrap, group, members_part(wrap, group));
    op.scratch = {directions};
    write(op, directions);
  }
};

}  // namespace gxp
