#include "lib/arch/architecture.h"

#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace gxp {
namespace {

constexpr const char* kLogitsName = "logits";
constexpr const char* kCappedName = "capped_logits";

}  // namespace

size_t TensorSpec::count() const {
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>());
}

size_t UnitSpec::trainable_count() const {
  size_t count = 0;
  for (const TensorSpec& tensor : tensors) count += tensor.frozen ? 0 : tensor.count();
  return count;
}

size_t UnitSpec::parameter_count() const {
  size_t count = 0;
  for (const TensorSpec& tensor : tensors) count += tensor.count();
  return count;
}

const TensorSpec* UnitSpec::bias_of(const TensorSpec& matrix) const {
  const std::string name = matrix.name.substr(0, matrix.name.rfind('.')) + ".bias";
  const auto found = std::ranges::find(tensors, name, &TensorSpec::name);
  return found == tensors.end() ? nullptr : &*found;
}

size_t TensorSpec::kept_code_bytes() const {
  if (parts.empty()) return gxp::kept_code_bytes(count());
  size_t bytes = 0;
  for (const size_t rows : parts) bytes += gxp::kept_code_bytes(rows * shape[1]);
  return bytes;
}

int Architecture::lowest_trained_unit() const {
  const auto is_trained = [](const UnitSpec& unit) { return !unit.is_frozen(); };
  return int(std::ranges::find_if(units, is_trained) - units.begin());
}

size_t UnitSpec::kept_code_bytes() const {
  size_t bytes = 0;
  for (const TensorSpec& tensor : tensors)
    if (tensor.shape.size() == 2 && !tensor.adapter) bytes += tensor.kept_code_bytes();
  return bytes;
}

size_t Architecture::parameter_count() const {
  size_t count = 0;
  for (const UnitSpec& unit : units) count += unit.parameter_count();
  return count;
}

double Architecture::train_flops_per_token(size_t positions) const {
  const double multiplied = double(parameter_count() - looked_up);
  return 6 * multiplied +
         6 * double(config.layers) * double(attention_channels) * double(positions);
}

void set_logits_rows(Architecture& architecture, size_t rows) {
  UnitSpec& head = architecture.units.back();
  for (auto* scratch : {&head.forward_scratch, &head.backward_scratch}) {
    for (ActivationSpec& spec : *scratch)
      if (spec.name == kLogitsName || spec.name == kCappedName) spec.most_tokens = rows;
  }
}

ActivationSpec logits_in_pieces(size_t vocabulary, DType dtype) {
  return {kLogitsName, vocabulary, std::max<size_t>(64, (size_t{16} << 20) / vocabulary), dtype};
}

std::vector<int> units_matching(const Architecture& architecture, const std::string& pattern) {
  std::vector<int> matching;
  for (size_t unit = 0; unit < architecture.units.size(); ++unit) {
    if (fnmatch(pattern.c_str(), architecture.units[unit].name.c_str(), 0) == 0)
      matching.push_back(int(unit));
  }
  return matching;
}

}  // namespace gxp
