#include <array>
#include <string_view>

#include "lib/base/error.h"
#include "lib/optim/elementwise.h"
#include "lib/optim/optimizer.h"

namespace gxp {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(Ops& ops, const OptimConfig& config);
};

constexpr std::array kOptimizers = {Row{"adamw", make_adamw}, Row{"adam", make_adam},
                                    Row{"sgd", make_sgd}, Row{"lion", make_lion}};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(Ops& ops, const OptimConfig& config) {
  for (const Row& row : kOptimizers) {
    if (row.name == config.name) return row.make(ops, config);
  }
  fail(ErrorKind::kConfig, "optim.name: '{}' is unknown", config.name);
}

}  // namespace gxp
