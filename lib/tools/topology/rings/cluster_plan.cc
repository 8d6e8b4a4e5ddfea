#include "lib/tools/topology/rings/cluster_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lib/base/error.h"
#include "lib/tools/topology/nccl/nccl_host_routes.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/plan/double_binary_tree.h"

namespace gxp {
namespace {

void check_known(const Topology& topology) {
  if (topology.hosts.empty())
    fail(ErrorKind::kConfig, "plan for {}: it has no host", topology.name);
  for (const auto& tree : topology.trees) {
    if (!tree->places_known)
      fail(ErrorKind::kConfig,
           "plan for {}: {} does not describe how GPUs are connected; use nvidia-smi topo -m",
           topology.name, tree->source);
  }
  for (const TopologyHost& host : topology.hosts) {
    if (host.tree != kNoTree || topology.trees.empty()) continue;
    fail(ErrorKind::kConfig, "plan for {}: the hardware of host {} is unknown", topology.name,
         host.name);
  }
}

// Gives channel c the least rate that it has on any host, and no host more channels than another.
void align(std::vector<RingPlan>& plans) {
  size_t channels = std::numeric_limits<size_t>::max();
  for (const RingPlan& plan : plans) channels = std::min(channels, plan.channels.size());
  for (size_t c = 0; c < channels; ++c) {
    double least = std::numeric_limits<double>::infinity();
    for (const RingPlan& plan : plans) least = std::min(least, plan.channels[c].gb_per_s);
    for (RingPlan& plan : plans) plan.channels[c].gb_per_s = least;
  }
  for (RingPlan& plan : plans) {
    plan.channels.resize(channels);
    plan.gb_per_s = 0;
    for (const RingChannel& channel : plan.channels) plan.gb_per_s += channel.gb_per_s;
  }
}

void add_route(const HostRoutes& routes, int from, int to, double amount,
               std::vector<double>& used) {
  for (const uint32_t link : routes.route(from, to).links) used[link] += amount;
}

// Bus bandwidth of an all-reduce by trees whose chains in each of `hosts` hosts follow the channels
// of `plan`.
// All data go up and down each chain once.
double tree_rate(const HostRoutes& routes, const RingPlan& plan, int hosts) {
  std::vector<double> used(routes.links().size(), 0);
  const double between = busiest_host_of_trees(hosts);
  for (const RingChannel& channel : plan.channels) {
    const double share = channel.gb_per_s / plan.gb_per_s;
    const std::vector<int>& gpus = channel.ring.gpus;
    for (size_t i = 0; i + 1 < gpus.size(); ++i) {
      add_route(routes, gpus[i], gpus[i + 1], share, used);
      add_route(routes, gpus[i + 1], gpus[i], share, used);
    }
    if (channel.ring.nic < 0) continue;
    const int nic = routes.place_of_nic(channel.ring.nic);
    add_route(routes, nic, gpus[0], between * share, used);
    add_route(routes, gpus[0], nic, between * share, used);
  }
  double reduced_gb_per_s = std::numeric_limits<double>::infinity();
  for (size_t link = 0; link < used.size(); ++link) {
    if (used[link] == 0) continue;
    reduced_gb_per_s = std::min(reduced_gb_per_s, routes.links()[link].gb_per_s / used[link]);
  }
  const double ranks = double(hosts) * routes.gpus();
  return ranks == 1 ? 0 : 2 * (ranks - 1) / ranks * reduced_gb_per_s;
}

}  // namespace

double busiest_host_of_trees(int hosts) {
  const DoubleBinaryTree trees(hosts);
  double most = 0;
  for (int host = 0; host < hosts; ++host) {
    double received = host == 0 ? 0 : 1;  // the sum, half of it from above in each tree
    for (const int tree : {0, 1}) {
      for (const int child : trees.children(tree, host)) received += child == 0 ? 0 : 0.5;
    }
    most = std::max(most, received);
  }
  return most;
}

ClusterPlan plan_cluster(const Topology& topology, int most_channels) {
  std::vector<HostRoutes> kinds;
  for (const auto& tree : topology.trees) {
    const NcclPaths paths(*tree);
    kinds.push_back(nccl_host_routes(paths, NcclRoutes(paths)));
  }
  return plan_cluster(topology, std::move(kinds), most_channels);
}

ClusterPlan plan_cluster(const Topology& topology, std::vector<HostRoutes> kinds,
                         int most_channels) {
  check_known(topology);
  const int hosts = int(topology.hosts.size());
  const bool several = hosts > 1;
  ClusterPlan plan{.host_order = order_hosts(topology), .kinds = std::move(kinds)};
  for (const HostRoutes& routes : plan.kinds) {
    plan.rings.push_back(
        plan_rings(routes, {.through_nics = several, .most_channels = most_channels}));
    if (plan.rings.back().channels.empty()) {
      fail(ErrorKind::kConfig, "plan for {}: no ring leads through all GPUs of a host{}",
           topology.name, several ? " and a NIC" : "");
    }
  }
  if (plan.kinds.size() > 1) align(plan.rings);
  std::vector<size_t> as_given = plan.host_order;
  std::ranges::sort(as_given);
  plan.traffic = traffic_of_ring(topology, plan.host_order);
  plan.traffic_as_given = traffic_of_ring(topology, as_given);
  for (size_t kind = 0; kind < plan.kinds.size(); ++kind) {
    const double ring = plan.rings[kind].gb_per_s;
    const double tree = tree_rate(plan.kinds[kind], plan.rings[kind], hosts);
    plan.ring_gb_per_s = kind == 0 ? ring : std::min(plan.ring_gb_per_s, ring);
    plan.tree_gb_per_s = kind == 0 ? tree : std::min(plan.tree_gb_per_s, tree);
  }
  if (plan.traffic.limit) {
    plan.ring_gb_per_s = std::min(plan.ring_gb_per_s, plan.traffic.gb_per_s);
  }
  plan.tree_depth = DoubleBinaryTree(hosts).height();
  return plan;
}

}  // namespace gxp
