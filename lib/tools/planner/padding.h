// The padding of each sharding layout: elements that fill the last shard, and that ranks store,
// gather and update without use. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/arch/published_models.h"

namespace gxp {

struct ShardLayout {
  std::string_view name;  // "rows"
  std::string_view meaning;
  // The number of elements by which padding for `ranks` equal shards makes the model larger.
  uint64_t (*padding)(const PublishedModel& model, uint64_t ranks);
};

// rows          each tensor by rows of its first dimension, as FSDP2 does
// tensors       each tensor by elements, as DeepSpeed's ZeRO-3 does
// whole model   all elements in a row, two aligned, as DeepSpeed's ZeRO-1 and 2 do
// units         each unit's elements in a row, 128 aligned: one unit is gathered at a time
std::span<const ShardLayout> shard_layouts();

}  // namespace gxp
