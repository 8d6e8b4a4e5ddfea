// A plan of rings and trees as a report.
#pragma once

#include "lib/report/report.h"
#include "lib/topo/rings/cluster_plan.h"

namespace gxp {

// Facts: ring_gb_per_s and what it is limited by, bound_gb_per_s (no rings carry more),
// tree_gb_per_s, tree_depth, hops of a ring between switches as planned and in the given order.
// channels[] of {kind, channel, gb_per_s, nic, gpus}, GPUs by name in the order of the ring, of
// each kind of hosts; of several hosts hosts[] in their order, with what each hangs on in either
// tree.
Report plan_report(const Topology& topology, const ClusterPlan& plan);

}  // namespace gxp
