// The logical tensors inside flat memory of parameters, gradients or moments.
#pragma once

#include <vector>

#include "lib/arch/architecture.h"
#include "lib/shard/layout.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// The tensors of `unit`, in the order and shapes of UnitSpec::tensors. `flat` is the unit's
// flat range.
std::vector<Tensor> unit_tensors(const Architecture& architecture, const ParameterLayout& layout,
                                 int unit, const Tensor& flat);

// A part's gradients in the flat buffer of all, which holds one of `shards` shards of every wrap
// (1: all).
Tensor gradients_of(const ParameterLayout& layout, const TensorPart& part, const Tensor& gradients,
                    int shards);

}  // namespace gxp
