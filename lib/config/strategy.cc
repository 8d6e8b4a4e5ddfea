#include "lib/config/strategy.h"

#include "lib/base/error.h"

namespace gxp {

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> kStrategies = {
      {.name = "ddp", .summary = "every rank holds everything; gradients are all-reduced"},
      {.name = "zero1",
       .summary = "optimizer state is sharded; gradients are reduce-scattered, parameters gathered",
       .shard_optimizer = true},
      {.name = "zero2",
       .summary = "as zero1, and each rank keeps its shard of the gradients only",
       .shard_optimizer = true,
       .shard_gradients = true},
      {.name = "zero3",
       .summary = "as zero2, and parameters are gathered by unit, for forward and for backward",
       .shard_optimizer = true,
       .shard_gradients = true,
       .shard_parameters = true,
       .reshard_after_forward = true},
      {.name = "full_shard",
       .summary = "FSDP's name for zero3",
       .shard_optimizer = true,
       .shard_gradients = true,
       .shard_parameters = true,
       .reshard_after_forward = true},
      {.name = "shard_grad_op",
       .summary = "as zero3, but gathered parameters stay from forward to backward",
       .shard_optimizer = true,
       .shard_gradients = true,
       .shard_parameters = true},
      {.name = "no_shard", .summary = "FSDP's name for ddp"},
      {.name = "hybrid_shard",
       .summary = "full_shard within a shard group, a copy in each",
       .shard_optimizer = true,
       .shard_gradients = true,
       .shard_parameters = true,
       .reshard_after_forward = true,
       .hybrid = true},
      {.name = "hybrid_shard_zero2",
       .summary = "shard_grad_op within a shard group, a copy in each",
       .shard_optimizer = true,
       .shard_gradients = true,
       .shard_parameters = true,
       .hybrid = true},
      {.name = "zero3_hpz",
       .summary = "ZeRO++'s hpZ: as zero3, but parameters are gathered within a shard group",
       .shard_optimizer = true,
       .shard_gradients = true,
       .shard_parameters = true,
       .reshard_after_forward = true,
       .hybrid = true,
       .optimizer_over_replicas = true},
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
