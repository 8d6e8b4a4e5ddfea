#include "lib/arch/architecture.h"

#include <array>
#include <functional>
#include <numeric>

#include "lib/arch/gpt2.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

struct Family {
  std::string_view name;
  Architecture (*make)(const ModelConfig&);
};

constexpr std::array kFamilies = {Family{"gpt2", gpt2::make_gpt2}};

}  // namespace

size_t TensorSpec::count() const {
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>());
}

size_t UnitSpec::parameter_count() const {
  size_t count = 0;
  for (const TensorSpec& tensor : tensors) count += tensor.count();
  return count;
}

size_t Architecture::parameter_count() const {
  size_t count = 0;
  for (const UnitSpec& unit : units) count += unit.parameter_count();
  return count;
}

double Architecture::train_flops_per_token(size_t positions) const {
  const auto hidden = double(config.hidden);
  const double multiplied = double(parameter_count()) - double(config.context) * hidden;
  return 6 * multiplied + 6 * double(config.layers) * hidden * double(positions);
}

Architecture make_architecture(const ModelConfig& config) {
  for (const Family& family : kFamilies) {
    if (family.name == config.family) return family.make(config);
  }
  fail(ErrorKind::kConfig, "model.family: '{}' is unknown; use gpt2", config.family);
}

}  // namespace gxp
