// A plan of rings and trees as a report.
#pragma once

#include "lib/report/report.h"
#include "lib/tools/topology/rings/cluster_plan.h"

namespace gxp {

// Facts: ring_gb_per_s and its limit, bound_gb_per_s (no rings carry more), tree_gb_per_s,
// tree_depth, the hops of a ring between switches as planned and in the given order. channels[] of
// {kind, channel, gb_per_s, nic, gpus} for each kind of hosts, GPUs by name in the order of the
// ring; for several hosts hosts[] in the planned order, with the parent of each in both trees.
Report plan_report(const Topology& topology, const ClusterPlan& plan);

}  // namespace gxp
