// An element-wise operation of kernels/ops.h with its tensors, as a backend gets it.
#pragma once

#include <array>

#include "kernels/math/elementwise.h"
#include "kernels/math/random_block.h"
#include "lib/tensor/tensor.h"

namespace gxp {

struct ElementwiseCall {
  ElementwiseMath math;
  std::array<Tensor, 3> written = {};    // the form's first arrays
  std::array<ConstTensor, 2> read = {};  // the arrays after them
  [[nodiscard]] size_t count() const { return written[0].count(); }
};

// AdamW with moments of fewer bits, on a flat range of a tensor of `count` elements.
struct PackedAdamW {
  AdamWUpdate math;
  Tensor weights;
  Tensor first, second;  // (count), both bf16 or both u8: codes (kernels/math/dynamic_map.h)
  ConstTensor gradients;
  // u8: f32, one for each kStateBlock elements, of which the last may be fewer.
  Tensor first_scales, second_scales;
  // bf16: the random bits of the range's elements.
  RandomBits first_bits, second_bits;
  [[nodiscard]] size_t count() const { return weights.count(); }
};

inline ElementwiseForm form_of(const ElementwiseMath& math) {
  return std::visit([](const auto& one) { return one.kForm; }, math);
}

}  // namespace gxp
