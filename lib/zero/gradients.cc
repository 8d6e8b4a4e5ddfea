#include "lib/zero/gradients.h"

#include <cmath>

#include "lib/zero/flat_tensors.h"

namespace gxp {

void all_sum(Communicator& communicator, const Tensor& gradients) {
  communicator.all_reduce(gradients.memory, gradients.dtype, ReduceOp::kSum);
}

void scatter_sum(Communicator& communicator, const Tensor& wrap) {
  communicator.reduce_scatter(wrap.memory, wrap.dtype, ReduceOp::kSum);
}

double sum_of_squares(Ops& ops, const ParameterLayout& layout, std::span<const TensorPart> parts,
                      const Tensor& gradients, int shards) {
  double sum = 0;
  for (const TensorPart& part : parts)
    sum += ops.sum_of_squares(gradients_of(layout, part, gradients, shards));
  return sum;
}

const TensorPart* find_non_finite(Ops& ops, const ParameterLayout& layout,
                                  std::span<const TensorPart> parts, const Tensor& gradients,
                                  int shards) {
  for (const TensorPart& part : parts) {
    if (!std::isfinite(ops.sum_of_squares(gradients_of(layout, part, gradients, shards))))
      return &part;
  }
  return nullptr;
}

}  // namespace gxp
