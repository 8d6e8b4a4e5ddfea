// Rings that all carry the same, as NCCL's channels do.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/tools/topology/rings/ring.h"

namespace gxp {

// The limits of a search; counted down, and below 0 if they ended the search.
struct SearchBudget {
  int64_t rings = 0;  // found one by one (cheapest_ring.h)
  int64_t hops = 0;   // taken in a search through all rings
};

// `count` rings of `gb_per_s` each, that the links carry all at once; those that start at a NIC use
// the NICs evenly. If they can be found one by one, the first ring has the nearest types of hops,
// then the fewest links, then the lowest GPU numbers; each further one likewise, on the bandwidth
// that is left. Nothing if there are none, or the budget was not enough to find them.
std::optional<std::vector<Ring>> find_even_rings(const HostRoutes& routes,
                                                 const std::vector<int>& starts, int count,
                                                 double gb_per_s, SearchBudget& budget);

}  // namespace gxp
