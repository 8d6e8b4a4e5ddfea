// The plan (topo/plan/rank_plan.h) for a job's ranks, from the topology that comm.topology names.
#pragma once

#include <span>
#include <string>

#include "lib/base/deadline.h"
#include "lib/net/store/store.h"
#include "lib/topo/plan/rank_plan.h"

namespace gxp {

// `topology` as load_topology() takes it: of as many hosts as the job has, in their order, or of
// one, which all are like. The k-th rank of a host is its local rank k (topo/rings/rank_seats.h).
// `hosts`: of each rank, numbered from 0 in order of appearance; empty: all on one. Empty topology:
// an empty plan.
//   Errors  as load_topology(), plan_cluster(). kConfig: another number of hosts, or a host with
//   fewer GPUs than ranks.
//   Cost    that of plan_rings().
RankPlan plan_for_job(const std::string& topology, int ranks, std::span<const int> hosts);

// Rank 0's plan, on all ranks: what the topology's name means may differ between hosts. Called by
// all or none.
RankPlan share_plan_for_job(const std::string& topology, std::span<const int> hosts, Store& store,
                            int ranks, Deadline deadline);

}  // namespace gxp
