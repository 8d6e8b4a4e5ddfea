// Rings and trees over the hosts of a cluster, and the order of the hosts.
//
// Channel c enters and leaves every host by the same NIC, and goes from host to host in the order
// of order_hosts(): so traffic stays on its rail, and near in the network. Within a host a ring
// takes all GPUs (ring_plan.h). A tree is a double binary tree over the hosts; a host's part of it
// is a chain along the ring, from the first GPU behind the NIC: this GPU folds what arrives from
// the hosts below and from its own chain, and sends the result on.
#pragma once

#include <vector>

#include "lib/tools/topology/rings/host_order.h"
#include "lib/tools/topology/rings/ring_plan.h"

namespace gxp {

struct ClusterPlan {
  std::vector<size_t> host_order{};  // indices of Topology::hosts
  std::vector<HostRoutes> kinds{};   // of hosts: Topology::trees
  // One for each kind of hosts. If kinds differ, channel c has the same rate on all.
  std::vector<RingPlan> rings{};
  double ring_gb_per_s = 0;        // bus bandwidth of a ring all-reduce
  double tree_gb_per_s = 0;        // of a tree all-reduce over many segments
  int tree_depth = 0;              // hops between hosts from a leaf to the root
  RingTraffic traffic{};           // in host_order
  RingTraffic traffic_as_given{};  // in the order of the topology
};

// `kinds` are the routes of Topology::trees; without them, NCCL's. A topology without the inside of
// any host gives the order of the hosts alone.
//   Errors  kConfig: there is no host, or the inside of some hosts alone is known; no ring leads
//           through all GPUs; as plan_rings.
ClusterPlan plan_cluster(const Topology& topology, std::vector<HostRoutes> kinds,
                         int most_channels = RingRequest{}.most_channels);
ClusterPlan plan_cluster(const Topology& topology, int most_channels = RingRequest{}.most_channels);

// The bytes that the busiest host receives from other hosts, divided by the bytes that the trees
// reduce: 2 for a host with two hosts below it. It sends as much. 0 for one host.
double busiest_host_of_trees(int hosts);

}  // namespace gxp
