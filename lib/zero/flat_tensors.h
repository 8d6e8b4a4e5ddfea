// The logical tensors inside flat memory of parameters, gradients or optimizer state.
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

// A flat buffer of one shard of every wrap, in memory: `memory` has one dimension.
struct FlatShards {
  ShardPlaces places;
  Tensor memory;

  [[nodiscard]] Tensor wrap(int wrap) const { return at(places.wrap(wrap)); }
  [[nodiscard]] Tensor part(const TensorPart& part) const { return at(places.part(part)); }
  [[nodiscard]] Tensor at(const Range& elements) const {
    return memory.rows(elements.begin, elements.count);
  }
};

}  // namespace gxp
