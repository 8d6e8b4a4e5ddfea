// The plan of a cluster (cluster_plan.h) for its ranks: the best GPU for each rank, and the rings
// and groups of ranks wherever they run.
#pragma once

#include <span>
#include <vector>

#include "lib/tools/topology/model/cluster.h"
#include "lib/tools/topology/rings/cluster_plan.h"
#include "lib/topo/plan/rank_plan.h"

namespace gxp {

// As many ranks as place_ranks() takes, on the same GPUs: those of a leaf switch's hosts follow
// each other (host_order.h), those of a host in the order of its best ring (ring_plan.h).
// Algorithms combine and pass on between neighbouring ranks first
// (lib/collective/algorithm/reduction_tree.h), and that order is part of a run's bits: so this
// changes where ranks run, not what they do.
std::vector<int> plan_ranks(const Cluster& cluster, int ranks);

struct RankLocation {
  size_t host = 0;  // index into Topology::hosts
  int gpu = 0;      // of the host, as the plan numbers them
};

// The channels of the plan without the GPUs that have no rank. Channels have equal shares of the
// data, so channels that would slow down the others are left out. A plan that knows the order of
// hosts alone gives one ring, in which the ranks of a host follow each other.
// Precondition: places differ, and the plan is that of the topology.
RankPlan plan_of_ranks(const Topology& topology, const ClusterPlan& plan,
                       std::span<const RankLocation> places);
RankPlan plan_of_ranks(const Cluster& cluster, std::span<const int> gpu_of_rank);

}  // namespace gxp
