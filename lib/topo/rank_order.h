// Which rank goes on which GPU of a cluster, so that neighbouring ranks are near each other.
//
// Algorithms combine and pass on between neighbouring ranks first (lib/collective/core_ranks.h),
// and that order is part of a run's bits: so the plan changes not what ranks do, but where they
// are.
#pragma once

#include <vector>

#include "lib/topo/cluster.h"

namespace gxp {

// As many ranks as place_ranks() takes, on the same GPUs: those of a leaf switch's hosts follow
// each other (host_order.h), those of a host in the order of its best ring (ring_plan.h).
std::vector<int> plan_ranks(const Cluster& cluster, int ranks);

}  // namespace gxp
