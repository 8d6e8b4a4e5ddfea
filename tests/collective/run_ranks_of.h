// Ranks that are threads, over any transport of worlds.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/collective/run_ranks.h"
#include "tests/transport/worlds.h"

namespace gxp {

// What fn(communicator) returned on each rank.
template <class Fn>
auto run_ranks_of(const std::string& transport, int world_size, const Fn& fn,
                  const CommunicatorOptions& options = {}) {
  World world(transport, world_size);
  std::vector<std::unique_ptr<Store>> stores(static_cast<size_t>(world_size));
  const auto make = [&](int rank) {
    auto& store = stores[static_cast<size_t>(rank)];
    store = world.join_store(rank);
    return world.join(*store);
  };
  const auto results = run_ranks_over(make, world_size, fn, options);
  for (const auto& store : stores) store->close();
  return results;
}

}  // namespace gxp
