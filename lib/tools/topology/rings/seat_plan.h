// The plan of a topology for ranks that use all of it, one a GPU: what comm.topology reads.
#pragma once

#include "lib/tools/topology/rings/cluster_plan.h"
#include "lib/topo/plan/plan_file.h"

namespace gxp {

// Precondition: the plan is that of the topology. The k-th rank of a host is its local rank k
// (rank_seats.h); if the topology does not describe the inside of its hosts, the plan has only
// their order.
PlanFile plan_of_seats(const Topology& topology, const ClusterPlan& plan);

}  // namespace gxp
