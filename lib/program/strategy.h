// How a training run is spread over its ranks: a table of what is sharded. Stages differ in these
// flags and in nothing else; the builder turns them into operations.
#pragma once

#include <string_view>
#include <vector>

namespace gxp {

struct Strategy {
  std::string_view name;  // as in parallel.strategy
  std::string_view summary;
  bool shard_parameters = false;
  bool shard_gradients = false;
  bool shard_optimizer = false;
};

// Every strategy that the builder knows, the plainest first.
const std::vector<Strategy>& strategies();

// Throws kConfig if there is none of that name.
const Strategy& find_strategy(std::string_view name);

}  // namespace gxp
