// This rank's share of a run's memory: parameters, gradients and optimizer state of the plan's step
// program, on the device or offloaded; the place of each tensor in them; and the calls between the
// ranks that share them. The code that carries out the program's operations works on it.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/program/run_plan.h"
#include "lib/zero/compressed_calls.h"
#include "lib/zero/device_calls.h"
#include "lib/zero/lanes.h"
#include "lib/zero/memory/program_memory.h"
#include "lib/zero/offload/offloaded_memory.h"

namespace gxp {

// One or two dimensions.
inline Shape shape_of(const TensorSpec& tensor) {
  const auto& sizes = tensor.shape;
  GXP_ASSERT(sizes.size() == 1 || sizes.size() == 2);
  return sizes.size() == 1 ? Shape{sizes[0]} : Shape{sizes[0], sizes[1]};
}

// A flat buffer of one shard of every FSDP unit, in memory: `memory` has one dimension.
struct FlatShards {
  ShardRanges places;
  Tensor memory;

  [[nodiscard]] Tensor wrap(int wrap) const { return at(places.wrap(wrap)); }
  [[nodiscard]] Tensor part(const TensorPart& part) const { return at(places.part(part)); }
  [[nodiscard]] Tensor at(const Range& elements) const {
    return memory.rows(elements.begin, elements.count);
  }
};

struct ShardedMemory {
  // [collective] All arguments but `offload` outlive it. Errors: as its fields'.
  ShardedMemory(const RunPlan& plan, Communicator& communicator, Lanes& lanes,
                const OffloadConfig& offload);
  ShardedMemory(const ShardedMemory&) = delete;

  // Whether ranks hold shards of the optimizer state.
  [[nodiscard]] bool is_sharded() const { return program.optimizer_shards > 1; }
  [[nodiscard]] const UnitSpec& unit_of(const TensorPart& part) const {
    return plan.architecture.units[size_t(part.unit)];
  }
  [[nodiscard]] const TensorSpec& spec_of(const TensorPart& part) const {
    return unit_of(part).tensors[size_t(part.tensor)];
  }
  [[nodiscard]] int wrap_of(const TensorPart& part) const { return plan.layout.wrap_of(part); }
  // The buffer that holds the part as it is trained or, if it is frozen, read; and its place there.
  [[nodiscard]] BufferId weights_of(const TensorPart& part) const {
    return spec_of(part).frozen ? program.parameters : program.weights();
  }
  [[nodiscard]] Range place_of_weights(const TensorPart& part) const {
    const bool of_optimizer = weights_of(part) != program.parameters;
    return (of_optimizer ? places() : parameter_places()).part(part);
  }
  [[nodiscard]] Tensor tensor(BufferId buffer) const { return memory.tensor(buffer); }
  // An FSDP unit's parameters or gradients, flat.
  [[nodiscard]] Tensor wrap_at(int wrap, const FlatView& view) const;
  // This rank's shard of a flat FSDP unit that is cut into `shards` equal parts.
  [[nodiscard]] Tensor own_shard(const Tensor& wrap, int shards) const;
  // The operand of a call among `group`: the flat FSDP unit, or the shard that the replicas share.
  [[nodiscard]] Tensor part_of_group(const Tensor& wrap, RankGroup group) const {
    return group == RankGroup::kReplicas ? own_shard(wrap, groups.shard_size) : wrap;
  }
  // The persistent buffer of gradients.
  [[nodiscard]] FlatShards gradients() const;
  // The ranges of own_parts in the persistent buffer of parameters, and of those that are trained in
  // the optimizer's flat buffers.
  [[nodiscard]] ShardRanges parameter_places() const {
    return {plan.layout, program.parameter_shards};
  }
  [[nodiscard]] ShardRanges places() const { return {plan.layout, program.optimizer_shards}; }

  const RunPlan& plan;
  const StepProgram& program;  // plan.step's
  Lanes& lanes;
  const RankGroups groups;
  const int rank;
  DeviceCalls calls;           // on the comm lane
  CompressedCalls compressed;  // likewise
  ProgramMemory memory;
  const std::vector<KeptMemory> kept;  // by the calls
  OffloadedMemory offloaded;
  // This rank's shard of each tensor, in forward order, as the optimizer is sharded.
  const std::vector<TensorPart> own_parts;
  const std::vector<TensorPart> all_parts;  // every tensor whole
  // By kind of state, the place in its buffer for each of own_parts, or, if every rank holds all of
  // that state, for each of all_parts.
  std::vector<std::vector<Range>> kept_places;
  int64_t steps = 0;  // optimizer steps done; the trainer counts them
};

}  // namespace gxp
