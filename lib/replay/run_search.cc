#include "lib/replay/run_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "lib/arch/layer_set.h"
#include "lib/arch/recompute.h"
#include "lib/base/divisors.h"
#include "lib/config/rules.h"
#include "lib/config/strategy.h"
#include "lib/program/run_plan.h"

namespace gxp {
namespace {

using RunVariants = std::vector<PlanVariant<RunConfig>>;

bool is_refused(const RunConfig& run) { return !broken_rules(run).empty(); }

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

int sharded_states(const Strategy& strategy) {
  return strategy.shard_optimizer + strategy.shard_gradients + strategy.shard_parameters;
}

// A hybrid is the strategy of the same flags within smaller groups, so neither it nor another name
// is one more.
std::vector<const Strategy*> different_strategies() {
  std::vector<const Strategy*> different;
  for (const Strategy& strategy : strategies()) {
    const auto same = [&](const Strategy* other) { return shard_the_same(*other, strategy); };
    if (std::ranges::none_of(different, same)) different.push_back(&strategy);
  }
  return different;
}

RunVariants shard_more(const RunConfig& config) {
  RunVariants variants;
  const Strategy& now = find_strategy(config.parallel.strategy);
  if (now.hybrid) return variants;
  for (const Strategy* more : different_strategies()) {
    if (more->hybrid || sharded_states(*more) <= sharded_states(now)) continue;
    add_variant(variants, config, "parallel.strategy", quoted(more->name),
                [&](RunConfig& run) { run.parallel.strategy = more->name; });
  }
  return variants;
}

RunVariants keep_less(const RunConfig& config) {
  RunVariants variants;
  for (size_t kept = size_t(KeepSetting(config.train.keep)); kept-- > size_t(KeepSetting::kNone);) {
    const Choice<KeepSetting> less = KeepSetting(kept);
    add_variant(variants, config, "train.keep", quoted(less.word()),
                [&](RunConfig& run) { run.train.keep = less; });
  }
  if (config.train.fp8_weights == CodeReuse::kKept)
    add_variant(variants, config, "train.fp8_weights", quoted("again"),
                [](RunConfig& run) { run.train.fp8_weights = CodeReuse::kAgain; });
  return variants;
}

RunVariants recompute_more_units(const RunConfig& config) {
  RunVariants variants;
  for (size_t i = size_t(Recompute(config.train.recompute)) + 1; i < kRecomputeNames.size(); ++i)
    add_variant(variants, config, "train.recompute", quoted(kRecomputeNames[i]),
                [&](RunConfig& run) { run.train.recompute = Recompute(i); });
  return variants;
}

RunVariants accumulate_more(const RunConfig& config) {
  RunVariants variants;
  for (int cut = 2; config.train.micro_batch % cut == 0; cut *= 2) {
    auto& [changes, run] = variants.emplace_back(PlanVariant<RunConfig>{{}, config});
    run.train.micro_batch /= cut;
    run.train.grad_accum *= cut;
    changes = {{"train.micro_batch", fmt::to_string(run.train.micro_batch)}};
    if (run.train.global_batch == 0)
      changes.push_back({"train.grad_accum", fmt::to_string(run.train.grad_accum)});
  }
  return variants;
}

// The whole optimizer, then parameters too, where the rules of a run file allow it.
RunVariants offload_states(const RunConfig& config) {
  RunVariants variants;
  PlanVariant<RunConfig> variant{{}, config};
  OffloadConfig& offload = variant.plan.offload;
  const auto set = [&](std::string_view setting, Choice<OffloadTo>& where,
                       Choice<OffloadTo> value) {
    if (where != OffloadTo::kNone) return;
    where = value;
    variant.changes.push_back({setting, quoted(value.word())});
  };
  set("offload.optimizer", offload.optimizer, OffloadTo::kMemory);
  if (variant.changes.empty() && offload.ratio < 1)
    variant.changes.push_back({"offload.ratio", "1"});
  offload.ratio = 1;
  if (!variant.changes.empty()) variants.push_back(variant);
  const size_t before = variant.changes.size();
  set("offload.parameters", offload.parameters, offload.optimizer);
  if (variant.changes.size() > before) variants.push_back(variant);
  std::erase_if(variants, [](const auto& offloaded) { return is_refused(offloaded.plan); });
  return variants;
}

// A run of the same peak whose program is short: from the third micro-batch on, none takes more
// memory than the one before, unless all their sums are kept apart.
RunConfig with_few_micro_batches(RunConfig run) {
  if (run.train.deterministic != Determinism::kAnyWorldSize)
    run.train.grad_accum = std::min(run.train.grad_accum, 3);
  return run;
}

// The name under which groups of this size, or of all ranks, are allowed.
const Strategy& with_groups(const Strategy& strategy) {
  for (const Strategy& other : strategies())
    if (other.hybrid && shard_the_same(other, strategy)) return other;
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
  if (config.train.deterministic == Determinism::kAnyWorldSize) return {config};
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
  const OffloadTo where =
      config.offload.optimizer == OffloadTo::kFile ? OffloadTo::kFile : OffloadTo::kMemory;
  Configs all = {config, config, config};
  for (RunConfig& variant : all) variant.offload.parameters = OffloadTo::kNone;
  all[0].offload = {};
  all[1].offload.optimizer = where;
  all[2].offload.optimizer = where;
  all[2].offload.ratio = 1;
  all[2].offload.parameters = where;
  if (!can_offload_parameters(config.parallel, world_size)) all.pop_back();
  std::erase_if(all, is_refused);
  return all;
}

void set_batch(RunConfig& config, int value) { config.train.micro_batch = value; }

// The model must have that many positions, too.
void set_sequence(RunConfig& config, int value) {
  config.data.sequence = value;
  config.model.context = std::max(config.model.context, value);
}

// Of layers that are left out, nothing is said.
void set_layers(RunConfig& config, int value) {
  ModelConfig& model = config.model;
  for (std::string* text : {&model.window_layers, &model.unrotated_layers}) {
    auto in_set = parse_layers(*text, model.layers);
    if (!in_set || *text == "all") continue;
    in_set->resize(size_t(value));
    *text = layers_in_words(*in_set);
  }
  model.layers = value;
}

int least_number(const RunConfig& /*config*/) { return 1; }

// Patterns may name late units, without which the run is refused.
int least_layers(const RunConfig& config) {
  const auto all_match = [&](int layers) {
    RunConfig fewer = config;
    set_layers(fewer, layers);
    const Architecture architecture = make_architecture(fewer.model);
    const auto matches = [&](const std::string& pattern) {
      return !units_matching(architecture, pattern).empty();
    };
    return std::ranges::all_of(config.train.recompute_units, matches) &&
           std::ranges::all_of(config.parallel.wrap_units, matches);
  };
  int layers = 1;
  while (layers < config.model.layers && !all_match(layers)) ++layers;
  return layers;
}

// A program grows with the layers, and the time to build it with their square.
constexpr std::array kRunQuantities = {
    Quantity<RunConfig>{"batch", "train.micro_batch", 1 << 20, least_number, set_batch},
    Quantity<RunConfig>{"seq", "data.sequence", 1 << 20, least_number, set_sequence},
    Quantity<RunConfig>{"layers", "model.layers", 512, least_layers, set_layers},
};

}  // namespace

std::vector<CostedPlan<RunConfig>> runs_that_fit(
    const RunConfig& config, int world_size, uint64_t limit_bytes,
    const std::function<uint64_t(const RunConfig&)>& peak_of) {
  constexpr size_t kMostWays = 3;
  const auto is_possible = [&](const RunConfig& run) {
    return run.offload.parameters == OffloadTo::kNone ||
           can_offload_parameters(run.parallel, world_size);
  };
  const auto cost_if_it_fits = [&](const RunConfig& run) -> std::optional<PlanCost> {
    if (!is_possible(run)) return std::nullopt;
    const uint64_t bytes = peak_of(with_few_micro_batches(run));
    if (bytes > limit_bytes) return std::nullopt;
    return PlanCost{bytes};
  };
  PlanSpace<RunConfig> space{{keep_less, recompute_more_units, accumulate_more, offload_states},
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

std::span<const Quantity<RunConfig>> run_quantities() { return kRunQuantities; }

}  // namespace gxp
