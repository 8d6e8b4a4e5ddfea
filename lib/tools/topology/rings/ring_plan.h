// Ring channels through the GPUs of one host.
//
// The value of a plan: a ring all-reduce moves data at the sum of its channels' rates (its bus
// bandwidth), where a channel is as fast as its slowest link, and channels share what a link
// carries. Traffic takes the routes that it is given (host_routes.h).
//
// Method: a linear program over all rings says the most that any rings carry, and proves it by
// prices of the links. Then the fewest rings of equal rate are looked for that carry as much; if
// there are none, or not found, the channels are the program's, of unequal rates. Deterministic.
#pragma once

#include <vector>

#include "lib/tools/topology/rings/ring.h"

namespace gxp {

struct RingRequest {
  bool through_nics = false;  // rings over several hosts: they enter and leave by one NIC
  int most_channels = 64;     // NCCL's limit
};

struct RingPlan {
  std::vector<RingChannel> channels{};  // none: no ring leads through all GPUs
  double gb_per_s = 0;                  // their sum
  // An upper bound on what any rings carry, however many; the plan is optimal if gb_per_s equals
  // it.
  double bound_gb_per_s = 0;
  std::vector<uint32_t>
      limits{};  // the links that limit the bound: if they were wider, it would be higher
};

// The best plan of at most request.most_channels: the best single ring, or the best plan of any if
// its channels are no more; else the best rates of the largest of its channels. Among equal rings
// those are preferred that have the nearest types of hops, then the fewest links, then the lowest
// numbers. Up to kMaxExactGpus GPUs, the bound is exact.
//   Errors  kConfig: through NICs, and there are none; most_channels < 1.
//   Cost    8 GPUs some ms, 16 GPUs up to seconds.
RingPlan plan_rings(const HostRoutes& routes, const RingRequest& request = {});

}  // namespace gxp
