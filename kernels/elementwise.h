// An element-wise operation of kernels/ops.h with its tensors, as a backend gets it.
#pragma once

#include <array>

#include "kernels/math/elementwise.h"
#include "lib/tensor/tensor.h"

namespace gxp {

struct ElementwiseCall {
  ElementwiseMath math;
  std::array<Tensor, 3> written = {};    // the form's first arrays
  std::array<ConstTensor, 2> read = {};  // the arrays after them
  [[nodiscard]] size_t count() const { return written[0].count(); }
};

inline ElementwiseForm form_of(const ElementwiseMath& math) {
  return std::visit([](const auto& one) { return one.kForm; }, math);
}

}  // namespace gxp
