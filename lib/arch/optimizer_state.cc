#include "lib/arch/optimizer_state.h"

#include <algorithm>

#include "lib/arch/optimizers.h"

namespace gxp {

OptimizerSpec make_optimizer_spec(const OptimConfig& optim, bool some_are_frozen) {
  OptimizerSpec spec = find_optimizer(optim.name).spec(optim);
  for (KeptState& kept : spec.kept) kept.of_all = kept.of_all && !some_are_frozen;
  return spec;
}

bool sees_whole(const OptimizerSpec& optimizer, const UnitSpec& unit) {
  return optimizer.sees_whole != nullptr &&
         std::ranges::any_of(unit.tensors, [&](const TensorSpec& tensor) {
           return optimizer.sees_whole(unit, tensor);
         });
}

size_t workspace_bytes(const OptimizerSpec& optimizer, const UnitSpec& unit) {
  size_t most = 0;
  for (const TensorSpec& tensor : unit.tensors) {
    if (optimizer.sees_whole(unit, tensor))
      most = std::max(most, optimizer.workspace_bytes(tensor));
  }
  return most;
}

double outputs_per_input(const Architecture& architecture, const TensorSpec& matrix) {
  const auto first = double(matrix.shape[0]);
  const auto second = double(matrix.shape[1]);
  return architecture.inputs_first ? second / first : first / second;
}

}  // namespace gxp
