#include "lib/zero/gradients.h"

#include <algorithm>
#include <cmath>

namespace gxp {

void sum_squares(Ops& ops, const Tensor& total, std::span<const TensorPart> parts,
                 const FlatShards& gradients) {
  ops.fill({total.memory, DType::kF32, Shape{2}}, 0);  // an f64 of zero bits is 0, too
  for (const TensorPart& part : parts) ops.add_sum_of_squares(total, gradients.part(part));
}

const TensorPart* find_non_finite(Ops& ops, std::span<const TensorPart> parts,
                                  const FlatShards& gradients) {
  const auto found = std::ranges::find_if(parts, [&](const TensorPart& part) {
    return !std::isfinite(ops.sum_of_squares(gradients.part(part)));
  });
  return found == parts.end() ? nullptr : &*found;
}

}  // namespace gxp
