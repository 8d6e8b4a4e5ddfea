#include "lib/topo/rank_order.h"

#include <fmt/format.h>

#include <map>

#include "lib/topo/host_order.h"
#include "lib/topo/ring_plan.h"

namespace gxp {
namespace {

Topology network_of(const Cluster& cluster) {
  Topology topology;
  topology.switches.push_back({.name = "spine"});
  for (int host = 0; host < cluster.hosts(); ++host) {
    const auto leaf = cluster.leaf_of_host(host);
    const size_t at = leaf ? size_t(*leaf) + 1 : 0;
    while (topology.switches.size() <= at) {
      topology.switches.push_back(
          {.name = fmt::format("leaf {}", topology.switches.size() - 1), .above = 0});
    }
    topology.hosts.push_back({.name = fmt::format("host {}", host), .leaves = {at}});
  }
  return topology;
}

// The GPUs of a host in the order of its best ring.
const std::vector<int>& order_inside(const HostTopology& inside,
                                     std::map<const HostTopology*, std::vector<int>>& known) {
  const auto [it, added] = known.try_emplace(&inside);
  if (added)
    it->second = plan_rings(host_routes(inside), {.most_channels = 1}).channels[0].ring.gpus;
  return it->second;
}

}  // namespace

std::vector<int> plan_ranks(const Cluster& cluster, int ranks) {
  std::vector<std::vector<int>> gpus_of_host(size_t(cluster.hosts()));
  for (const int gpu : place_ranks(cluster, ranks)) {
    gpus_of_host[size_t(cluster.host_of(gpu))].push_back(gpu);
  }
  std::map<const HostTopology*, std::vector<int>> known;
  std::vector<int> gpu_of_rank;
  for (const size_t host : order_hosts(network_of(cluster))) {
    const std::vector<int>& gpus = gpus_of_host[host];
    const std::vector<int>& order = order_inside(cluster.inside_of_host(int(host)), known);
    for (const int gpu : order) {
      if (size_t(gpu) < gpus.size()) gpu_of_rank.push_back(gpus[size_t(gpu)]);
    }
  }
  return gpu_of_rank;
}

}  // namespace gxp
