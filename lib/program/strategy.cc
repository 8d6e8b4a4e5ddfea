#include "lib/program/strategy.h"

#include "lib/base/error.h"

namespace gxp {

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> kStrategies = {
      {.name = "ddp", .summary = "every rank holds everything; gradients are all-reduced"},
  };
  return kStrategies;
}

const Strategy& find_strategy(std::string_view name) {
  for (const Strategy& strategy : strategies()) {
    if (strategy.name == name) return strategy;
  }
  fail(ErrorKind::kConfig, "parallel.strategy: '{}' is unknown", name);
}

}  // namespace gxp
