#include "lib/zero/gradients.h"

#include <cmath>

#include "lib/zero/flat_tensors.h"

namespace gxp {

void all_sum(DeviceCalls& calls, Communicator& communicator, const Tensor& gradients) {
  calls.all_reduce(communicator, gradients.memory, gradients.dtype, ReduceOp::kSum);
}

void scatter_sum(DeviceCalls& calls, Communicator& communicator, const Tensor& wrap) {
  calls.reduce_scatter(communicator, wrap.memory, wrap.dtype, ReduceOp::kSum);
}

void sum_squares(Ops& ops, const Tensor& total, const ParameterLayout& layout,
                 std::span<const TensorPart> parts, const Tensor& gradients, int shards) {
  ops.fill({total.memory, DType::kF32, Shape{2}}, 0);  // an f64 of zero bits is 0, too
  for (const TensorPart& part : parts)
    ops.add_sum_of_squares(total, gradients_of(layout, part, gradients, shards));
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
