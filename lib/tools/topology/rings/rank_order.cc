#include "lib/tools/topology/rings/rank_order.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/numbering.h"
#include "lib/tools/topology/read/cluster_file.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/rings/host_order.h"

namespace gxp {
namespace {

// The GPUs of a host in the order of its best ring.
const std::vector<int>& order_inside(const HostTopology& inside,
                                     std::map<const HostTopology*, std::vector<int>>& known) {
  const auto [it, added] = known.try_emplace(&inside);
  if (added)
    it->second = plan_rings(host_routes(inside), {.most_channels = 1}).channels[0].ring.gpus;
  return it->second;
}

// The ranks of each host by GPU.
using RanksOfHosts = std::vector<std::map<int, int>>;

RanksOfHosts ranks_of_hosts(size_t hosts, std::span<const RankLocation> places) {
  RanksOfHosts ranks(hosts);
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const bool is_new = ranks[places[rank].host].try_emplace(places[rank].gpu, int(rank)).second;
    GXP_ASSERT(is_new);
  }
  return ranks;
}

// The ranks along a channel, or by the order of hosts alone.
void add_ring(const Topology& topology, const ClusterPlan& plan, const RanksOfHosts& ranks,
              size_t channel, std::vector<int>& rings) {
  for (const size_t host : plan.host_order) {
    const std::map<int, int>& rank_of_gpu = ranks[host];
    if (plan.rings.empty()) {
      for (const auto& [gpu, rank] : rank_of_gpu) rings.push_back(rank);
      continue;
    }
    for (const int gpu : plan.rings[topology.hosts[host].tree].channels[channel].ring.gpus) {
      if (const auto rank = rank_of_gpu.find(gpu); rank != rank_of_gpu.end())
        rings.push_back(rank->second);
    }
  }
}

// The channels that together carry most if each has as much; of a plan of hosts alone, one.
std::vector<size_t> channels_alike(const ClusterPlan& plan) {
  if (plan.rings.empty()) return {0};
  const std::vector<RingChannel>& channels = plan.rings[0].channels;
  std::vector<size_t> order(channels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t channel) { return channels[channel].gb_per_s; });
  size_t best = 0;
  const auto together = [&](size_t last) {
    return double(last + 1) * channels[order[last]].gb_per_s;
  };
  for (size_t last = 1; last < order.size(); ++last) {
    if (together(last) > together(best)) best = last;
  }
  order.resize(best + 1);
  std::ranges::sort(order);
  return order;
}

// The bandwidth of the route alone; 0 without a route.
double rate_of(const HostRoutes& routes, int from, int to) {
  const HostRoute& route = routes.route(from, to);
  double gb_per_s = route.exists ? std::numeric_limits<double>::infinity() : 0;
  for (const uint32_t link : route.links)
    gb_per_s = std::min(gb_per_s, routes.links()[link].gb_per_s);
  return gb_per_s;
}

// Whether all pairs of `rates` in one group are at least so wide, no others are, and the groups are
// of equal size.
bool separates(double wide, const std::vector<std::vector<double>>& rates,
               const std::vector<int>& groups) {
  std::map<int, int> sizes;
  for (size_t a = 0; a < groups.size(); ++a) {
    ++sizes[groups[a]];
    for (size_t b = 0; b < groups.size(); ++b) {
      if ((a == b || rates[a][b] >= wide) != (groups[a] == groups[b])) return false;
    }
  }
  const int size = sizes.begin()->second;
  return std::ranges::all_of(sizes, [&](const auto& group) { return group.second == size; });
}

// With g groups of s ranks, w wide within and c between, a ring through all sends 2 (gs - 1) / gs
// of the data over c; in groups it is 2 (s - 1) / s over w, then 2 (g - 1) / g over c. So groups
// pay where w > g c.
std::vector<int> groups_in_host(const HostRoutes& routes, const std::vector<int>& gpus) {
  std::vector<std::vector<double>> rates(gpus.size(), std::vector<double>(gpus.size(), 0));
  std::set<double> known = {0};
  for (size_t a = 0; a < gpus.size(); ++a) {
    for (size_t b = 0; b < gpus.size(); ++b) {
      if (a != b) known.insert(rates[a][b] = rate_of(routes, gpus[a], gpus[b]));
    }
  }
  for (auto narrow = known.begin(); std::next(narrow) != known.end(); ++narrow) {
    const double wide = *std::next(narrow);
    std::vector<int> first_of;
    for (size_t a = 0; a < gpus.size(); ++a) {
      size_t b = 0;
      while (b != a && rates[a][b] < wide) ++b;
      first_of.push_back(int(b));
    }
    auto groups = number_if_different<int>(first_of);
    if (groups.empty() || !separates(wide, rates, groups)) continue;
    if (wide > (std::ranges::max(groups) + 1) * *narrow) return groups;
  }
  return {};
}

std::vector<int> groups_of_ranks(const Topology& topology, const ClusterPlan& plan,
                                 std::span<const RankLocation> places) {
  std::vector<int> hosts, gpus;
  for (const RankLocation& place : places) {
    hosts.push_back(int(place.host));
    gpus.push_back(place.gpu);
  }
  auto groups = number_if_different<int>(hosts);
  if (!groups.empty() || plan.kinds.empty()) return groups;
  return groups_in_host(plan.kinds[topology.hosts[places[0].host].tree], gpus);
}

}  // namespace

std::vector<int> plan_ranks(const Cluster& cluster, int ranks) {
  std::vector<std::vector<int>> gpus_of_host(size_t(cluster.hosts()));
  for (const int gpu : place_ranks(cluster, ranks)) {
    gpus_of_host[size_t(cluster.host_of(gpu))].push_back(gpu);
  }
  std::map<const HostTopology*, std::vector<int>> known;
  std::vector<int> gpu_of_rank;
  for (const size_t host : order_hosts(topology_of(cluster.description(), {}))) {
    const std::vector<int>& gpus = gpus_of_host[host];
    const std::vector<int>& order = order_inside(cluster.inside_of_host(int(host)), known);
    for (const int gpu : order) {
      if (size_t(gpu) < gpus.size()) gpu_of_rank.push_back(gpus[size_t(gpu)]);
    }
  }
  return gpu_of_rank;
}

RankPlan plan_of_ranks(const Topology& topology, const ClusterPlan& plan,
                       std::span<const RankLocation> places) {
  GXP_ASSERT(!places.empty());
  const RanksOfHosts ranks = ranks_of_hosts(topology.hosts.size(), places);
  RankPlan result{.ranks = int(places.size()), .groups = groups_of_ranks(topology, plan, places)};
  for (const size_t channel : channels_alike(plan))
    add_ring(topology, plan, ranks, channel, result.rings);
  return result;
}

RankPlan plan_of_ranks(const Cluster& cluster, std::span<const int> gpu_of_rank) {
  std::vector<HostRoutes> kinds;
  for (const HostGroup& group : cluster.description().groups)
    kinds.push_back(host_routes(group.inside));
  const Topology topology = topology_of(cluster.description(), {});
  std::vector<int> first_gpu(size_t(cluster.hosts()), cluster.gpus());
  for (int gpu = cluster.gpus() - 1; gpu >= 0; --gpu) first_gpu[size_t(cluster.host_of(gpu))] = gpu;
  std::vector<RankLocation> places;
  for (const int gpu : gpu_of_rank) {
    const auto host = size_t(cluster.host_of(gpu));
    places.push_back({host, gpu - first_gpu[host]});
  }
  return plan_of_ranks(topology, plan_cluster(topology, std::move(kinds)), places);
}

}  // namespace gxp
