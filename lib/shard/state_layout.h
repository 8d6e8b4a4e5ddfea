// Where optimizer state lies in its buffer. Pure; offsets and counts are in f32 elements.
#pragma once

#include <span>
#include <vector>

#include "lib/arch/optimizer_state.h"
#include "lib/shard/layout.h"

namespace gxp {

// Where the state of each part lies; a range of count 0 where none is kept. State of all tensors
// lies as the tensors do, so that it can be worked on in flat ranges; other state lies closely,
// each part at a multiple of kTensorAlignment. `parts` are those that make_parts() cuts for
// `shards` shards, or all tensors whole for state that every rank holds.
std::vector<Range> place_state(const Architecture& architecture, const ParameterLayout& layout,
                               const KeptState& state, std::span<const TensorPart> parts,
                               int shards);

// Elements of the buffer: of the largest shard, where there are several.
size_t state_count(const Architecture& architecture, const ParameterLayout& layout,
                   const KeptState& state, int shards);

}  // namespace gxp
