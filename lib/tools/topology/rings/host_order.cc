#include "lib/tools/topology/rings/host_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/base/error.h"
#include "lib/tools/topology/read/topology.h"

namespace gxp {
namespace {

// From `leaf` to the topmost switch above it.
std::vector<size_t> switches_from(const Topology& topology, size_t leaf) {
  std::vector<size_t> chain;
  for (size_t at = leaf; at != kNoSwitch; at = topology.switches[at].above) {
    chain.push_back(at);
    if (chain.size() > topology.switches.size()) {
      fail(ErrorKind::kConfig, "{}: switch {} is above itself", topology.name,
           topology.switches[at].name);
    }
  }
  return chain;
}

// Calls act(switch) for each link up that a hop between two hosts takes.
template <class Act>
void for_each_link_up(const std::vector<size_t>& from, const std::vector<size_t>& to,
                      const Act& act) {
  for (const size_t at : from) {
    if (std::ranges::find(to, at) != to.end()) return;
    act(at);
  }
}

}  // namespace

std::vector<size_t> order_hosts(const Topology& topology) {
  std::vector<size_t> rank_of_switch(topology.switches.size(), kNoSwitch);
  std::vector<std::vector<size_t>> keys;  // of each host: its switches, the topmost first
  size_t seen = 0;
  for (const TopologyHost& host : topology.hosts) {
    std::vector<size_t> key;
    if (!host.leaves.empty()) key = switches_from(topology, host.leaves[0]);
    std::ranges::reverse(key);
    for (size_t& at : key) {
      if (rank_of_switch[at] == kNoSwitch) rank_of_switch[at] = seen++;
      at = rank_of_switch[at];
    }
    if (key.empty()) key.push_back(kNoSwitch);
    keys.push_back(std::move(key));
  }
  std::vector<size_t> order(topology.hosts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t host) { return keys[host]; });
  return order;
}

RingTraffic traffic_of_ring(const Topology& topology, const std::vector<size_t>& order) {
  RingTraffic traffic{.hops_up = std::vector<double>(topology.switches.size(), 0)};
  for (size_t i = 0; i < order.size(); ++i) {
    const std::vector<size_t>& from = topology.hosts[order[i]].leaves;
    const std::vector<size_t>& to = topology.hosts[order[(i + 1) % order.size()]].leaves;
    const size_t rails = std::min(from.size(), to.size());
    for (size_t rail = 0; rail < rails; ++rail) {
      for_each_link_up(switches_from(topology, from[rail]), switches_from(topology, to[rail]),
                       [&](size_t at) { traffic.hops_up[at] += 1.0 / double(rails); });
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (size_t at = 0; at < traffic.hops_up.size(); ++at) {
    const double hops = traffic.hops_up[at];
    traffic.hops_between_switches += topology.switches[at].above == kNoSwitch ? 0 : hops;
    const double uplink = topology.switches[at].uplink_gb_per_s;
    if (hops == 0 || uplink == 0 || uplink / hops >= least) continue;
    least = uplink / hops;
    traffic.limit = at;
  }
  traffic.gb_per_s = traffic.limit ? least : 0;
  return traffic;
}

std::string to_hostfile(const Topology& topology, const std::vector<size_t>& order, int slots) {
  std::string text;
  for (const size_t host : order) {
    text += topology.hosts[host].name;
    if (slots > 0) text += fmt::format(" slots={}", slots);
    text += '\n';
  }
  return text;
}

}  // namespace gxp
