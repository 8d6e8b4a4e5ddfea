#include <array>
#include <string_view>

#include "lib/base/error.h"
#include "lib/optim/elementwise.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/whole.h"

namespace gxp {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(const ComputeLane& lane, const OptimConfig& config);
};

constexpr std::array kOptimizers = {
    Row{"adamw", make_adamw}, Row{"adam", make_adam},           Row{"sgd", make_sgd},
    Row{"lion", make_lion},   Row{"adafactor", make_adafactor}, Row{"muon", make_muon}};

}  // namespace

// Of an optimizer that sees no tensor whole.
void Optimizer::prepare(const Tensor& /*direction*/, const UpdateRange& /*range*/,
                        const UpdateStep& /*step*/) {
  GXP_ASSERT(false);
}
void Optimizer::transform(const WholeTensor& /*whole*/, const UpdateStep& /*step*/) {
  GXP_ASSERT(false);
}
void Optimizer::apply(const UpdateRange& /*range*/, const UpdateStep& /*step*/) {
  GXP_ASSERT(false);
}

std::unique_ptr<Optimizer> make_optimizer(const ComputeLane& lane, const OptimConfig& config) {
  for (const Row& row : kOptimizers) {
    if (row.name == config.name) return row.make(lane, config);
  }
  fail(ErrorKind::kConfig, "optim.name: '{}' is unknown", config.name);
}

}  // namespace gxp
