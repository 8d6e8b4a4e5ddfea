// The maximum total bandwidth of any rings through a host, each with a bandwidth of its own: a
// linear program over all rings, which find_cheapest_ring makes as they are wanted.
#pragma once

#include <vector>

#include "lib/tools/topology/rings/cheapest_ring.h"
#include "lib/tools/topology/rings/ring.h"

namespace gxp {

struct RingPacking {
  std::vector<RingChannel> channels{};
  double gb_per_s = 0;  // their sum
  // No rings carry more. Up to kMaxExactGpus GPUs, equal to gb_per_s, except for rounding.
  double bound_gb_per_s = 0;
  // The proof, by link: no ring's links cost less than 1, and all that the links carry costs
  // bound_gb_per_s.
  std::vector<double> prices{};
};

// A hop costs the price of its links; nearer types, then fewer links break ties.
RingCosts costs_of_routes(const HostRoutes& routes, const std::vector<double>& prices);

// The `most` largest channels, at the rates at which they together carry the most.
std::vector<RingChannel> pack_few(const HostRoutes& routes, std::vector<RingChannel> channels,
                                  size_t most);

// Empty if no ring leads through all GPUs. `starts` as of starts_of_rings.
// Precondition: each ring uses a link.
RingPacking pack_rings(const HostRoutes& routes, const std::vector<int>& starts);

}  // namespace gxp
