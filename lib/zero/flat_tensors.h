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

// A part's elements in a buffer of all units, or of one rank's shard of them.
Tensor part_of(const TensorPart& part, Memory buffer, bool is_shard);

}  // namespace gxp
