// The logical tensors inside flat memory of parameters, gradients or moments.
#pragma once

#include <vector>

#include "lib/arch/architecture.h"
#include "lib/shard/layout.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// The tensors of `unit`, in the order and shapes of UnitSpec::tensors. `memory` holds the unit's
// flat range, f32.
std::vector<Tensor> unit_tensors(const Architecture& architecture, const ParameterLayout& layout,
                                 int unit, Memory memory);

// A part's elements in f32 `buffer`, which holds one of `shards` shards of every unit (1: all).
Tensor part_of(const ParameterLayout& layout, const TensorPart& part, Memory buffer, int shards);

}  // namespace gxp
