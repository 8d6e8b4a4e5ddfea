#include "lib/arch/optimizer_state.h"

#include <algorithm>
#include <array>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

using Sizes = std::vector<size_t>;

// Muon's: a matrix between hidden layers, so neither a table nor the head.
bool is_hidden_matrix(const UnitSpec& unit, const TensorSpec& tensor) {
  return unit.kind == UnitKind::kBlock && tensor.shape.size() == 2 && !tensor.frozen;
}
bool is_any(const UnitSpec& /*unit*/, const TensorSpec& tensor) { return !tensor.frozen; }

Sizes as_tensor(const UnitSpec& /*unit*/, const TensorSpec& tensor) {
  return tensor.frozen ? Sizes{} : tensor.shape;
}
Sizes unless_hidden_matrix(const UnitSpec& unit, const TensorSpec& tensor) {
  return is_hidden_matrix(unit, tensor) ? Sizes{} : as_tensor(unit, tensor);
}
Sizes rows(const UnitSpec& /*unit*/, const TensorSpec& tensor) {
  return tensor.shape.size() == 2 && !tensor.frozen ? Sizes{tensor.shape[0]} : Sizes{};
}
Sizes columns(const UnitSpec& /*unit*/, const TensorSpec& tensor) {
  return tensor.frozen ? Sizes{} : Sizes{tensor.shape.back()};
}

constexpr KeptState kFirst = {"first moments", "adam_m", as_tensor};
constexpr KeptState kSecond = {"second moments", "adam_v", as_tensor};
constexpr KeptState kMomentum = {"momentum", "momentum", as_tensor};
constexpr KeptState kSecondOfOthers = {"second moments", "adam_v", unless_hidden_matrix, false};
constexpr KeptState kRowMeans = {"row means", "row_means", rows, false, true};
constexpr KeptState kColumnMeans = {"column means", "column_means", columns, false, true};

// Of orthogonalise() and of Adafactor's transform().
size_t muon_workspace(const TensorSpec& tensor) {
  const size_t shorter = std::min(tensor.shape[0], tensor.shape[1]);
  return round_up(sizeof(float) * (2 * shorter * shorter + tensor.count()), 8);
}
size_t adafactor_workspace(const TensorSpec& tensor) {
  const size_t row_count = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  return round_up((sizeof(double) + sizeof(float)) * (row_count + tensor.shape.back()), 8);
}

struct Row {
  std::string_view name;
  OptimizerSpec (*make)(const OptimConfig& optim);
};

OptimizerSpec adam(const OptimConfig& /*optim*/) { return {.kept = {kFirst, kSecond}}; }
OptimizerSpec lion(const OptimConfig& /*optim*/) { return {.kept = {kMomentum}}; }
OptimizerSpec sgd(const OptimConfig& optim) {
  if (optim.momentum == 0) return {};
  return {.kept = {kMomentum}};
}
// The momentum of what AdamW updates is its first moment.
OptimizerSpec muon(const OptimConfig& /*optim*/) {
  return {{kMomentum, kSecondOfOthers}, is_hidden_matrix, muon_workspace};
}
OptimizerSpec adafactor(const OptimConfig& /*optim*/) {
  return {{kRowMeans, kColumnMeans}, is_any, adafactor_workspace};
}

constexpr std::array kRows = {Row{"adamw", adam}, Row{"adam", adam},           Row{"sgd", sgd},
                              Row{"lion", lion},  Row{"adafactor", adafactor}, Row{"muon", muon}};

}  // namespace

OptimizerSpec make_optimizer_spec(const OptimConfig& optim, bool some_are_frozen) {
  for (const Row& row : kRows) {
    if (row.name != optim.name) continue;
    OptimizerSpec spec = row.make(optim);
    for (KeptState& kept : spec.kept) kept.of_all = kept.of_all && !some_are_frozen;
    return spec;
  }
  fail(ErrorKind::kConfig, "optim.name: '{}' is unknown", optim.name);
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
