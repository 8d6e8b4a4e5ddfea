// The logical tensors inside a flat buffer of parameters (or gradients, or moments).
#pragma once

#include <vector>

#include "lib/arch/architecture.h"
#include "lib/shard/layout.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// The tensors of `unit`, in the order and shapes of UnitSpec::tensors. `flat` holds layout.count
// floats.
std::vector<Tensor> unit_tensors(const Architecture& architecture, const ParameterLayout& layout,
                                 int unit, Memory flat);

// The same of all units, in forward order.
std::vector<Tensor> all_tensors(const Architecture& architecture, const ParameterLayout& layout,
                                Memory flat);

}  // namespace gxp
