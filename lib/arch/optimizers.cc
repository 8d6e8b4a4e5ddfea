#include "lib/arch/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lib/base/bytes.h"
#include "lib/base/find_row.h"
#include "lib/base/state_block.h"
#include "lib/base/text/joined.h"

namespace gxp {
namespace {

using Sizes = std::vector<size_t>;

// What Muon updates: a matrix between hidden layers, so neither a table nor the head.
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
Sizes blocks(const UnitSpec& /*unit*/, const TensorSpec& tensor) {
  return tensor.frozen ? Sizes{} : Sizes{(tensor.count() + kStateBlock - 1) / kStateBlock};
}
Sizes rows(const UnitSpec& /*unit*/, const TensorSpec& tensor) {
  return tensor.shape.size() == 2 && !tensor.frozen ? Sizes{tensor.shape[0]} : Sizes{};
}
Sizes columns(const UnitSpec& /*unit*/, const TensorSpec& tensor) {
  return tensor.frozen ? Sizes{} : Sizes{tensor.shape.back()};
}

constexpr KeptState kFirst = {"first moments", "adam_m", as_tensor};
constexpr KeptState kSecond = {"second moments", "adam_v", as_tensor};
constexpr KeptState kFirstScales = {
    "scales of first moments", "adam_m_scales", blocks, true, false, DType::kF32, kStateBlock};
constexpr KeptState kSecondScales = {
    "scales of second moments", "adam_v_scales", blocks, true, false, DType::kF32, kStateBlock};
constexpr KeptState kMomentum = {"momentum", "momentum", as_tensor};
constexpr KeptState kSecondOfOthers = {"second moments", "adam_v", unless_hidden_matrix, false};
constexpr KeptState kRowMeans = {"row means", "row_means", rows, false, true};
constexpr KeptState kColumnMeans = {"column means", "column_means", columns, false, true};

// What orthogonalise() and Adafactor's transform() work in.
size_t muon_workspace(const TensorSpec& tensor) {
  const size_t shorter = std::min(tensor.shape[0], tensor.shape[1]);
  return round_up(sizeof(float) * (2 * shorter * shorter + tensor.count()), 8);
}
size_t adafactor_workspace(const TensorSpec& tensor) {
  const size_t row_count = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  return round_up((sizeof(double) + sizeof(float)) * (row_count + tensor.shape.back()), 8);
}

// Of codes the scales follow, in the same order.
OptimizerSpec keep_two_moments(const OptimConfig& optim) {
  OptimizerSpec spec{.kept = {kFirst, kSecond}};
  const bool are_codes = optim.state_dtype == MomentType::kInt8;
  for (KeptState& moment : spec.kept)
    moment.dtype = are_codes                                ? DType::kU8
                   : optim.state_dtype == MomentType::kBf16 ? DType::kBF16
                                                            : DType::kF32;
  if (are_codes) spec.kept.insert(spec.kept.end(), {kFirstScales, kSecondScales});
  return spec;
}

std::string dampening_problem(const OptimConfig& optim) {
  if (optim.dampening == 0 || optim.momentum > 0) return "";
  return fmt::format("needs optim.momentum above 0, is {}", optim.dampening);
}

// As PyTorch's SGD demands.
std::string nesterov_problem(const OptimConfig& optim) {
  if (!optim.nesterov || (optim.momentum > 0 && optim.dampening == 0)) return "";
  return fmt::format("needs optim.momentum above 0 and optim.dampening 0, which are {} and {}",
                     optim.momentum, optim.dampening);
}

// "adam: lr 1e-3, beta2 0.999".
std::string defaults_in_words(const OptimizerRow& row) {
  std::vector<std::string> words;
  for (const OptimizerDefault& preset : row.defaults)
    words.push_back(fmt::format("{} {}", preset.key, preset.value));
  return fmt::format("{}: {}", row.name, joined(words, ", "));
}

}  // namespace

const std::vector<OptimizerRow>& optimizers() {
#define GXP_OPTIMIZER(optimizer, ...) {.name = #optimizer, __VA_ARGS__},
  static const std::vector<OptimizerRow> kOptimizers = {
#include "lib/arch/optimizers.inc"
  };
#undef GXP_OPTIMIZER
  return kOptimizers;
}

bool OptimizerRow::has(std::string_view key) const {
  return std::ranges::find(keys, key) != keys.end();
}

std::vector<std::string_view> optimizer_names() { return row_names(optimizers()); }

std::vector<std::string_view> optimizers_with(std::string_view key) {
  return rows_with(optimizers(), key);
}

const OptimizerRow& find_optimizer(std::string_view name) {
  return find_row(optimizers(), name, "optim.name", ErrorKind::kConfig);
}

std::string_view optimizers_in_words() {
  static const std::string kWords = [] {
    std::vector<std::string> rows;
    for (const OptimizerRow& row : optimizers()) {
      if (!row.defaults.empty()) rows.push_back(defaults_in_words(row));
    }
    return fmt::format("The optimizer. Some defaults depend on its name. {}.", joined(rows, "; "));
  }();
  return kWords;
}

std::string_view update_rules_in_words() {
  static const std::string kWords = [] {
    std::vector<std::string> rows;
    for (const OptimizerRow& row : optimizers()) {
      if (!row.rule_in_words.empty())
        rows.push_back(fmt::format("{} {}", row.name, row.rule_in_words));
    }
    return fmt::format("Update rule. {}.", joined(rows, "; "));
  }();
  return kWords;
}

OptimizerSpec make_optimizer_spec(const OptimConfig& optim) {
  return find_optimizer(optim.name).spec(optim);
}

size_t block_of(const OptimizerSpec& optimizer) {
  size_t most = 1;
  for (const KeptState& kept : optimizer.kept) most = std::max(most, kept.block);
  return most;
}

bool needs_unsharded(const OptimizerSpec& optimizer, const UnitSpec& unit) {
  return optimizer.needs_unsharded != nullptr &&
         std::ranges::any_of(unit.tensors, [&](const TensorSpec& tensor) {
           return optimizer.needs_unsharded(unit, tensor);
         });
}

size_t workspace_bytes(const OptimizerSpec& optimizer, const UnitSpec& unit) {
  size_t most = 0;
  for (const TensorSpec& tensor : unit.tensors) {
    if (optimizer.needs_unsharded(unit, tensor))
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
