// The plan of a topology for ranks that use all of it, one a GPU: what comm.topology reads.
#pragma once

#include "lib/tools/topology/rings/cluster_plan.h"
#include "lib/topo/plan/plan_file.h"

namespace gxp {

// Precondition: the plan is that of the topology. The k-th rank of a host is its local rank k
// (rank_seats.h); of a topology that does not know what is in its hosts, the order of these alone.
PlanFile plan_of_seats(const Topology& topology, const ClusterPlan& plan);

}  // namespace gxp
