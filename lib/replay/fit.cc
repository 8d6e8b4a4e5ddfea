#include "lib/replay/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/arch/optimizer_state.h"
#include "lib/arch/recompute.h"
#include "lib/config/strategy.h"
#include "lib/program/run_plan.h"

namespace gxp {
namespace {

using RunVariants = std::vector<PlanVariant<RunConfig>>;

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

int sharded_states(const Strategy& strategy) {
  return strategy.shard_optimizer + strategy.shard_gradients + strategy.shard_parameters;
}

RunVariants shard_more(const RunConfig& config) {
  RunVariants variants;
  const Strategy& now = find_strategy(config.parallel.strategy);
  for (const char* name : {"zero1", "zero2", "zero3"}) {
    if (now.hybrid || sharded_states(find_strategy(name)) <= sharded_states(now)) continue;
    auto& [changes, run] = variants.emplace_back(
        PlanVariant<RunConfig>{{{"parallel.strategy", quoted(name)}}, config});
    run.parallel.strategy = name;
  }
  return variants;
}

RunVariants recompute_more_units(const RunConfig& config) {
  RunVariants variants;
  const auto now = parse_recompute(config.train.recompute);
  for (size_t i = size_t(*now) + 1; i < kRecomputeNames.size(); ++i) {
    auto& [changes, run] = variants.emplace_back(
        PlanVariant<RunConfig>{{{"train.recompute", quoted(kRecomputeNames[i])}}, config});
    run.train.recompute = kRecomputeNames[i];
  }
  return variants;
}

RunVariants accumulate_more(const RunConfig& config) {
  RunVariants variants;
  for (int cut = 2; config.train.micro_batch % cut == 0; cut *= 2) {
    auto& [changes, run] = variants.emplace_back(PlanVariant<RunConfig>{{}, config});
    run.train.micro_batch /= cut;
    run.train.grad_accum *= cut;
    changes = {{"train.micro_batch", fmt::to_string(run.train.micro_batch)},
               {"train.grad_accum", fmt::to_string(run.train.grad_accum)}};
  }
  return variants;
}

bool can_offload(const RunConfig& config) {
  const std::vector<KeptState> kept =
      make_optimizer_spec(config.optim, !config.train.frozen.empty()).kept;
  const bool elementwise = std::ranges::all_of(kept, &KeptState::of_all);
  return elementwise && (!kept.empty() || config.train.precision != "fp32");
}

// The whole optimizer, then parameters too.
RunVariants offload_states(const RunConfig& config) {
  RunVariants variants;
  if (!can_offload(config)) return variants;
  PlanVariant<RunConfig> variant{{}, config};
  OffloadConfig& offload = variant.plan.offload;
  const auto set = [&](std::string_view setting, std::string& where, const std::string& value) {
    if (where != "none") return;
    where = value;
    variant.changes.push_back({setting, quoted(value)});
  };
  set("offload.optimizer", offload.optimizer, "memory");
  if (variant.changes.empty() && offload.ratio < 1)
    variant.changes.push_back({"offload.ratio", "1"});
  offload.ratio = 1;
  if (!variant.changes.empty()) variants.push_back(variant);
  const size_t before = variant.changes.size();
  set("offload.parameters", offload.parameters, offload.optimizer);
  if (variant.changes.size() > before) variants.push_back(variant);
  return variants;
}

// A run of the same peak whose program is short: from the third micro-batch on, none takes more
// memory than the one before, unless all their sums are kept apart.
RunConfig with_few_micro_batches(RunConfig run) {
  if (run.train.deterministic != "any-world-size")
    run.train.grad_accum = std::min(run.train.grad_accum, 3);
  return run;
}

}  // namespace

std::vector<CostedPlan<RunConfig>> runs_that_fit(
    const RunConfig& config, int world_size, uint64_t limit_bytes,
    const std::function<uint64_t(const RunConfig&)>& peak_of) {
  constexpr size_t kMostWays = 3;
  const auto is_possible = [&](const RunConfig& run) {
    return run.offload.parameters == "none" || can_offload_parameters(run.parallel, world_size);
  };
  const auto cost_if_it_fits = [&](const RunConfig& run) -> std::optional<PlanCost> {
    if (!is_possible(run)) return std::nullopt;
    const uint64_t bytes = peak_of(with_few_micro_batches(run));
    if (bytes > limit_bytes) return std::nullopt;
    return PlanCost{bytes};
  };
  PlanSpace<RunConfig> space{{recompute_more_units, accumulate_more, offload_states},
                             cost_if_it_fits};
  if (world_size > 1) space.savings.insert(space.savings.begin(), shard_more);
  // A plan takes milliseconds, and there are hundreds: if all savings together do not suffice, none
  // is searched for.
  RunConfig smallest = config;
  for (const auto& saving : space.savings) {
    for (const auto& variant : saving(smallest))
      if (is_possible(variant.plan)) smallest = variant.plan;
  }
  if (!cost_if_it_fits(smallest)) return {};
  return plans_that_fit(space, config, kMostWays);
}

}  // namespace gxp
