#include "lib/replay/run_variants.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/arch/recompute.h"
#include "lib/base/divisors.h"
#include "lib/config/rules.h"
#include "lib/config/strategy.h"
#include "lib/program/run_plan.h"

namespace gxp {
namespace {

bool are_alike(const Strategy& a, const Strategy& b) {
  return a.shard_optimizer == b.shard_optimizer && a.shard_gradients == b.shard_gradients &&
         a.shard_parameters == b.shard_parameters &&
         a.reshard_after_forward == b.reshard_after_forward &&
         a.optimizer_over_replicas == b.optimizer_over_replicas;
}

// A hybrid is the strategy of the same flags within smaller groups, so neither it nor another name
// is one more.
std::vector<const Strategy*> different_strategies() {
  std::vector<const Strategy*> different;
  for (const Strategy& strategy : strategies()) {
    const auto same = [&](const Strategy* other) { return are_alike(*other, strategy); };
    if (std::ranges::none_of(different, same)) different.push_back(&strategy);
  }
  return different;
}

// The name under which groups of this size, or of all ranks, are allowed.
const Strategy& with_groups(const Strategy& strategy) {
  for (const Strategy& other : strategies())
    if (other.hybrid && are_alike(other, strategy)) return other;
  return strategy;
}

using Configs = std::vector<RunConfig>;

Configs shard(const RunConfig& config, int world_size) {
  Configs all;
  for (const Strategy* strategy : different_strategies()) {
    if (world_size == 1 && strategy->shard_optimizer) continue;
    for (const uint64_t divisor : divisors(uint64_t(world_size))) {
      const int size = int(divisor);
      const bool whole = size == world_size;
      if (whole ? strategy->hybrid : !strategy->shard_optimizer || size == 1) continue;
      RunConfig& variant = all.emplace_back(config);
      variant.parallel.strategy = whole ? strategy->name : with_groups(*strategy).name;
      variant.parallel.shard_size = whole ? 0 : size;
    }
  }
  return all;
}

// A sum over all micro-batches of any ranks needs those that the run has.
Configs cut_batch(const RunConfig& config) {
  if (config.train.deterministic == "any-world-size") return {config};
  Configs all;
  const int rows = config.train.micro_batch * config.train.grad_accum;
  for (const uint64_t micro_batch : divisors(uint64_t(rows))) {
    RunConfig& variant = all.emplace_back(config);
    variant.train.micro_batch = int(micro_batch);
    variant.train.grad_accum = rows / int(micro_batch);
  }
  return all;
}

Configs recomputing(const RunConfig& config) {
  Configs all;
  for (const std::string_view mode : kRecomputeNames)
    all.emplace_back(config).train.recompute = mode;
  return all;
}

Configs offloading(const RunConfig& config, int world_size) {
  const std::string where = config.offload.optimizer == "file" ? "file" : "memory";
  Configs all = {config, config, config};
  for (RunConfig& variant : all) variant.offload.parameters = "none";
  all[0].offload = {};
  all[1].offload.optimizer = where;
  all[2].offload.optimizer = where;
  all[2].offload.ratio = 1;
  all[2].offload.parameters = where;
  if (!can_offload_parameters(config.parallel, world_size)) all.pop_back();
  std::erase_if(all, [](const RunConfig& variant) { return !broken_rules(variant).empty(); });
  return all;
}

}  // namespace

std::vector<RunConfig> run_variants(const RunConfig& config, int world_size) {
  std::vector<RunConfig> all;
  for (const RunConfig& sharded : shard(config, world_size)) {
    for (const RunConfig& cut : cut_batch(sharded)) {
      for (const RunConfig& computed : recomputing(cut)) {
        for (RunConfig& variant : offloading(computed, world_size))
          all.push_back(std::move(variant));
      }
    }
  }
  return all;
}

}  // namespace gxp
