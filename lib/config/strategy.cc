#include "lib/config/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "lib/base/find_row.h"
#include "lib/base/text/joined.h"
#include "lib/config/parallel_config.h"

namespace gxp {
namespace {

constexpr std::array kStrategies = {
    Strategy{.name = "ddp",
             .summary = "every rank holds all parameters, gradients and optimizer state"},
    Strategy{.name = "zero1",
             .summary = "optimizer state is sharded; gradients are reduce-scattered, updated "
                        "parameters gathered",
             .shard_optimizer = true},
    Strategy{.name = "zero2",
             .summary = "as zero1, and gradients are sharded",
             .shard_optimizer = true,
             .shard_gradients = true},
    Strategy{.name = "zero3",
             .summary =
                 "as zero2, and parameters are sharded; they are gathered unit by unit in the "
                 "forward pass and again in the backward pass",
             .shard_optimizer = true,
             .shard_gradients = true,
             .shard_parameters = true,
             .reshard_after_forward = true},
    Strategy{.name = "full_shard",
             .summary = "FSDP's name for zero3",
             .shard_optimizer = true,
             .shard_gradients = true,
             .shard_parameters = true,
             .reshard_after_forward = true},
    Strategy{.name = "shard_grad_op",
             .summary = "as zero3, but parameters stay gathered from the forward pass to the "
                        "backward pass",
             .shard_optimizer = true,
             .shard_gradients = true,
             .shard_parameters = true},
    Strategy{.name = "no_shard", .summary = "FSDP's name for ddp"},
    Strategy{.name = "hybrid_shard",
             .summary = "full_shard within each group of shard_size ranks, and a copy in every "
                        "group",
             .shard_optimizer = true,
             .shard_gradients = true,
             .shard_parameters = true,
             .reshard_after_forward = true,
             .hybrid = true},
    Strategy{.name = "hybrid_shard_zero2",
             .summary = "likewise shard_grad_op",
             .shard_optimizer = true,
             .shard_gradients = true,
             .shard_parameters = true,
             .hybrid = true},
    Strategy{.name = "zero3_hpz",
             .summary = "ZeRO++'s hpZ: zero3 with a copy of the parameters in each group of "
                        "shard_size ranks; all ranks share gradients and optimizer state",
             .shard_optimizer = true,
             .shard_gradients = true,
             .shard_parameters = true,
             .reshard_after_forward = true,
             .hybrid = true,
             .optimizer_over_replicas = true},
};

}  // namespace

bool shard_the_same(Strategy a, const Strategy& b) {
  a.name = b.name;
  a.summary = b.summary;
  a.hybrid = b.hybrid;
  return a == b;
}

std::span<const Strategy> strategies() { return kStrategies; }

const Strategy& find_strategy(std::string_view name) {
  return find_row(kStrategies, name, "parallel.strategy", ErrorKind::kConfig);
}

std::optional<int> stage_of(std::string_view strategy) {
  const auto found = std::ranges::find(kStrategies, strategy, &Strategy::name);
  if (found == kStrategies.end()) return std::nullopt;
  return found->shard_optimizer + found->shard_gradients +
         (found->shard_parameters && found->reshard_after_forward);
}

std::vector<std::string_view> strategy_names() { return row_names(kStrategies); }

std::string_view strategies_in_words() {
  static const std::string kWords = [] {
    std::vector<std::string> rows;
    for (const Strategy& strategy : kStrategies)
      rows.push_back(fmt::format("{}: {}", strategy.name, strategy.summary));
    return fmt::format(
        "{}. All train to the same bits (hybrids: where shard_size is a power of two).",
        joined(rows, ". "));
  }();
  return kWords;
}

}  // namespace gxp
