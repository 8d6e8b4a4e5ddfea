#include "lib/zero/gradients.h"

#include <cmath>

#include "lib/zero/flat_tensors.h"

namespace gxp {

void reduce_bucket(Communicator& communicator, Memory gradients, const Bucket& bucket) {
  const Memory part =
      gradients.slice(bucket.flat.begin * sizeof(float), bucket.flat.count * sizeof(float));
  communicator.all_reduce(part, DType::kF32, ReduceOp::kSum);
}

void scatter_sum(Communicator& communicator, Memory unit) {
  communicator.reduce_scatter(unit, DType::kF32, ReduceOp::kSum);
}

double sum_of_squares(Ops& ops, const ParameterLayout& layout, std::span<const TensorPart> parts,
                      const Tensor& gradients, int shards) {
  double sum = 0;
  for (const TensorPart& part : parts)
    sum += ops.sum_of_squares(part_of(layout, part, gradients, shards));
  return sum;
}

const TensorPart* find_non_finite(Ops& ops, const ParameterLayout& layout,
                                  std::span<const TensorPart> parts, const Tensor& gradients,
                                  int shards) {
  for (const TensorPart& part : parts) {
    if (!std::isfinite(ops.sum_of_squares(part_of(layout, part, gradients, shards)))) return &part;
  }
  return nullptr;
}

}  // namespace gxp
