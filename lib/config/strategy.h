// How a training run is spread over its ranks: a table of what is sharded. Strategies differ in
// these flags and in nothing else; the builder turns them into operations.
// Sources: ZeRO: Rajbhandari et al., arXiv:1910.02054; the FSDP names: Zhao et al.,
// arXiv:2304.11277.
#pragma once

#include <string_view>
#include <vector>

namespace gxp {

struct Strategy {
  std::string_view name;  // as in parallel.strategy
  std::string_view summary;
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
};

// Every strategy that the builder knows, the plainest first.
const std::vector<Strategy>& strategies();

// Throws kConfig if there is none of that name.
const Strategy& find_strategy(std::string_view name);

}  // namespace gxp
