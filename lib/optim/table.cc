#include "lib/arch/optimizers.h"
#include "lib/optim/optimizer.h"

namespace gxp {

using MakeOptimizer = Optimizer(const ComputeLane&, const OptimConfig&);
#define GXP_OPTIMIZER(name, ...) MakeOptimizer make_##name;
#include "lib/arch/optimizers.inc"
#undef GXP_OPTIMIZER

Optimizer make_optimizer(const ComputeLane& lane, const OptimConfig& config) {
#define GXP_OPTIMIZER(name, ...) make_##name,
  constexpr MakeOptimizer* kMakers[] = {
#include "lib/arch/optimizers.inc"
  };
#undef GXP_OPTIMIZER
  return kMakers[size_t(&find_optimizer(config.name) - optimizers().data())](lane, config);
}

}  // namespace gxp
