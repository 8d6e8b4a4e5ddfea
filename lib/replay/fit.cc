#include "lib/replay/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/arch/optimizer_state.h"
#include "lib/base/error.h"
#include "lib/program/strategy.h"

namespace gxp {
namespace {

constexpr size_t kMostEdits = 3;

struct Variant {
  std::string settings;
  RunConfig config;
};
using Variants = std::vector<Variant>;  // of one kind, the smallest change first

Variants shard_more(const RunConfig& config, int world_size) {
  Variants variants;
  const Strategy& now = find_strategy(config.parallel.strategy);
  if (world_size == 1 || now.hybrid) return variants;
  for (const char* name : {"zero1", "zero2", "zero3"}) {
    const Strategy& other = find_strategy(name);
    if (other.shard_optimizer + other.shard_gradients + other.shard_parameters <=
        now.shard_optimizer + now.shard_gradients + now.shard_parameters)
      continue;
    Variant& variant =
        variants.emplace_back(fmt::format("parallel.strategy = \"{}\"", name), config);
    variant.config.parallel.strategy = name;
  }
  return variants;
}

Variants recompute(const RunConfig& config, int /*world_size*/) {
  Variants variants;
  for (const char* mode : {"selective", "full"}) {
    if (config.train.recompute == mode || config.train.recompute == "full") continue;
    Variant& variant = variants.emplace_back(fmt::format("train.recompute = \"{}\"", mode), config);
    variant.config.train.recompute = mode;
  }
  return variants;
}

// As many rows a step.
Variants smaller_batches(const RunConfig& config, int /*world_size*/) {
  Variants variants;
  for (int cut = 2; config.train.micro_batch % cut == 0; cut *= 2) {
    RunConfig other = config;
    other.train.micro_batch /= cut;
    other.train.grad_accum *= cut;
    variants.push_back({fmt::format("train.micro_batch = {} with train.grad_accum = {}",
                                    other.train.micro_batch, other.train.grad_accum),
                        other});
  }
  return variants;
}

bool can_offload(const RunConfig& config) {
  const std::vector<KeptState> kept =
      make_optimizer_spec(config.optim, !config.train.frozen.empty()).kept;
  const bool elementwise = std::ranges::all_of(kept, &KeptState::of_all);
  return elementwise && (!kept.empty() || config.train.precision != "fp32");
}

Variants offload(const RunConfig& config, int /*world_size*/) {
  const bool part = config.offload.ratio < 1;
  if (!can_offload(config) || (config.offload.optimizer != "none" && !part)) return {};
  RunConfig other = config;
  other.offload.ratio = 1;
  if (other.offload.optimizer == "none") other.offload.optimizer = "memory";
  return {{fmt::format("offload.optimizer = \"{}\"{}", other.offload.optimizer,
                       part ? " with offload.ratio = 1" : ""),
           other}};
}

Variants offload_parameters(const RunConfig& config, int world_size) {
  const bool shards = find_strategy(config.parallel.strategy).shard_parameters;
  if (!can_offload(config) || config.offload.parameters != "none" || (!shards && world_size > 1))
    return {};
  Variants variants = offload(config, world_size);
  if (variants.empty()) variants.push_back({"", config});
  auto& [settings, other] = variants.back();
  other.offload.parameters = other.offload.optimizer;
  settings += fmt::format("{}offload.parameters = \"{}\"", settings.empty() ? "" : " and ",
                          other.offload.parameters);
  return variants;
}

// Everything at once.
Variants all_together(const RunConfig& config, int world_size) {
  Variant last{"", config};
  for (const auto& kind : {shard_more, recompute, offload, offload_parameters, smaller_batches}) {
    const Variants more = kind(last.config, world_size);
    if (more.empty()) continue;
    last = {last.settings + (last.settings.empty() ? "" : " and ") + more.back().settings,
            more.back().config};
  }
  return {last};
}

}  // namespace

std::vector<Edit> edits_that_fit(const RunConfig& config, int world_size, uint64_t limit_bytes,
                                 const std::function<uint64_t(const RunConfig&)>& peak_of) {
  std::vector<Edit> edits;
  for (const auto& kind :
       {shard_more, recompute, smaller_batches, offload, offload_parameters, all_together}) {
    for (const Variant& variant : kind(config, world_size)) {
      const uint64_t bytes = peak_of(variant.config);
      if (bytes > limit_bytes || edits.size() == kMostEdits) continue;
      edits.push_back({variant.settings, bytes});
      break;
    }
  }
  return edits;
}

}  // namespace gxp
