// A plan as the graph file that NCCL takes (NCCL_GRAPH_FILE): the ring, id 0, and the tree, id 1.
//
// NCCL's channels are all equally fast and none faster than some 60 GB/s (its search's own limit,
// since a channel is one SM's work): faster ones of the plan become several, and of unequal ones
// each becomes as many as fit, at the rate at which these carry most.
#pragma once

#include "lib/tools/topology/read/channel_graphs.h"
#include "lib/tools/topology/rings/cluster_plan.h"

namespace gxp {

class HostTree;

// For the plan of one kind of hosts.
//   Errors  kConfig: a GPU or port has no number, by which the file names it; it is one GPU of one
//           host, which has no ring.
ChannelGraphs channel_graphs_of(const ClusterPlan& plan, const HostTree& tree);

}  // namespace gxp
