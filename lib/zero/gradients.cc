#include "lib/zero/gradients.h"

#include <cmath>

#include "lib/zero/flat_tensors.h"

namespace gxp {

void reduce_bucket(Communicator& communicator, Memory gradients, const Bucket& bucket) {
  const Memory part =
      gradients.slice(bucket.flat.begin * sizeof(float), bucket.flat.count * sizeof(float));
  communicator.all_reduce(part, DType::kF32, ReduceOp::kSum);
}

double gradient_norm(Ops& ops, const Architecture& architecture, const ParameterLayout& layout,
                     Memory gradients) {
  double sum = 0;
  for (const Tensor& gradient : all_tensors(architecture, layout, gradients))
    sum += ops.sum_of_squares(gradient);
  return std::sqrt(sum);
}

std::string first_non_finite(Ops& ops, const Architecture& architecture,
                             const ParameterLayout& layout, Memory gradients) {
  for (size_t unit = 0; unit < architecture.units.size(); ++unit) {
    const std::vector<Tensor> tensors = unit_tensors(architecture, layout, int(unit), gradients);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!std::isfinite(ops.sum_of_squares(tensors[i])))
        return architecture.units[unit].tensors[i].name;
    }
  }
  return "";
}

}  // namespace gxp
