// Places buffers in an arena: interval colouring, the largest buffer first, each at the lowest offset
// that is free in all of its life.
#pragma once

#include <span>

#include "lib/program/step_program.h"

namespace gxp {

// Sets `offset` of the buffers `order` names, in this order; `first` and `last` are known. `ops`: the
// number of operations. Cost: about buffers x log(ops)^2 where neighbours in time are neighbours in
// the arena, as a model's layers are; 65,536 layers take seconds.
void place_in_arena(std::span<BufferSpec> buffers, std::span<const BufferId> order, size_t ops);

}  // namespace gxp
