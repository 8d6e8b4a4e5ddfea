// How a training run is spread over its ranks: a table of what is sharded. Strategies differ in
// these flags and in nothing else; the builder turns them into operations. parallel.strategy, its
// manual, the plans and the tests read the table.
// Sources: ZeRO: Rajbhandari et al., arXiv:1910.02054; the FSDP names: Zhao et al.,
// arXiv:2304.11277.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace gxp {

struct Strategy {
  std::string_view name;     // as in parallel.strategy
  std::string_view summary;  // for the manual, after the name and a colon
  // A sharded thing is sharded by unit: the ranks of a shard group keep one equal part each.
  bool shard_optimizer = false;
  bool shard_gradients = false;   // only with shard_optimizer
  bool shard_parameters = false;  // only with shard_gradients
  // Gathered parameters are freed after a unit's forward and gathered again for its backward.
  bool reshard_after_forward = false;
  // Unless parallel.shard_size says otherwise, a shard group is the ranks of one host.
  bool hybrid = false;
  // Replicas share the optimizer's work and memory too, as with parallel.optimizer_over_replicas.
  bool optimizer_over_replicas = false;
  bool operator==(const Strategy&) const = default;
};

// Whether two strategies differ only in their names and in the size of their shard groups (the flag
// `hybrid`).
bool shard_the_same(Strategy a, const Strategy& b);

// Every strategy that the builder knows, the plainest first.
std::span<const Strategy> strategies();

// Throws kConfig if there is none of that name.
const Strategy& find_strategy(std::string_view name);

// The ZeRO stage of a strategy: "zero2" is 2, "ddp" 0, "full_shard" 3, shard_grad_op 2; nothing for
// unknown names, as another software's checkpoint may have.
std::optional<int> stage_of(std::string_view strategy);

}  // namespace gxp
