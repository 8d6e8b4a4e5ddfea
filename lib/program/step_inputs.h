// The inputs of a step program, and values derived from them alone. Pure.
#pragma once

#include <string>

#include "lib/program/build.h"

namespace gxp {

// The four are the caller's and outlive every writer that is given this.
struct StepInputs {
  const Architecture& architecture;
  const ParameterLayout& layout;
  const Strategy& strategy;
  const StepShape& shape;
  RankGroups groups = groups_of(shape);

  [[nodiscard]] const UnitSpec& unit(int unit) const { return architecture.units[size_t(unit)]; }
  [[nodiscard]] const FsdpUnit& wrap(int wrap) const { return layout.wraps[size_t(wrap)]; }
  [[nodiscard]] size_t tokens() const { return shape.rows * shape.positions; }
  // Bytes of the residual stream of a micro-batch, which is f32.
  [[nodiscard]] size_t stream_bytes() const {
    return tokens() * size_t(architecture.config.hidden) * sizeof(float);
  }
  // Ranks that share one copy of the parameters, and of the optimizer's state; 1: each has all.
  [[nodiscard]] int parameter_shards() const {
    return strategy.shard_parameters ? groups.shard_size : 1;
  }
  [[nodiscard]] int optimizer_shards() const {
    if (!strategy.shard_optimizer) return 1;
    return shape.optimizer_over_replicas ? groups.world_size : groups.shard_size;
  }
  [[nodiscard]] size_t norm_part_count() const {
    return size_t(shape.norm_parts > 0 ? shape.norm_parts : shape.world_size);
  }
  [[nodiscard]] const UnitLayout& place(int unit) const { return layout.units[size_t(unit)]; }
  // The position of a unit's parameters or gradients in a view of its FSDP unit's.
  [[nodiscard]] FlatView view_of(const UnitPart& part, const FlatView& wrap) const {
    return {wrap.buffer, wrap.begin + part.flat.begin - this->wrap(part.wrap).flat.begin};
  }
  // Elements of an FSDP unit that a shard group holds together, or the replicas of one of its
  // shards.
  [[nodiscard]] size_t count_of_members(int wrap, RankGroup group) const {
    const size_t count = this->wrap(wrap).flat.count;
    return group == RankGroup::kShards ? count : count / size_t(groups.shard_size);
  }
  // An FSDP unit's units: "h.0", "h.0 to h.3".
  [[nodiscard]] std::string name_of(int wrap) const {
    const FsdpUnit& place = this->wrap(wrap);
    const std::string& first = unit(place.first_unit).name;
    if (place.first_unit == place.last_unit) return first;
    return first + " to " + unit(place.last_unit).name;
  }
};

}  // namespace gxp
