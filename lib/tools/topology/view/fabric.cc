#include "lib/tools/topology/view/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "lib/base/text/joined.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMostEdgesApart = 8;

// Boxes side by side.
size_t breadth(const std::vector<FabricNode>& nodes) {
  size_t sum = 0;
  for (const FabricNode& node : nodes) sum += std::max<size_t>(breadth(node.below), 1);
  return sum;
}

// The bandwidth of all ports of a host; 0: none is known.
double network_gb_per_s(const HostTree& host) {
  double mbit_per_s = 0;
  for (const PartId id : host.all_of(PartKind::kPort))
    mbit_per_s += info_of<PortInfo>(host[id]).mbit_per_s;
  return mbit_per_s / 8000;
}

class FabricBuilder {
 public:
  FabricBuilder(const Topology& topology, bool joins_alike)
      : topology_(topology), joins_alike_(joins_alike), switches_(topology) {}

  std::vector<FabricNode> build() {
    std::vector<FabricNode> nodes = nodes_of(switches_.roots, 0);
    std::vector<size_t> alone;
    for (size_t host = 0; host < topology_.hosts.size(); ++host) {
      if (topology_.hosts[host].leaves.empty()) alone.push_back(host);
    }
    for (FabricNode& hosts : groups_of(alone)) nodes.push_back(std::move(hosts));
    return nodes;
  }

 private:
  // Hosts by what is in them.
  [[nodiscard]] std::vector<FabricNode> groups_of(const std::vector<size_t>& hosts) const {
    std::map<size_t, FabricNode> groups;
    for (const size_t host : hosts) {
      const TopologyHost& one = topology_.hosts[host];
      FabricNode& group = groups[one.tree];
      group.is_hosts = true;
      group.tree = one.tree;
      group.names.push_back(one.name);
      group.below_each = group.names.size();
    }
    std::vector<FabricNode> nodes;
    for (auto& [tree, group] : groups) {
      if (tree != kNoTree) group.uplink_gb_per_s = network_gb_per_s(*topology_.trees[tree]);
      nodes.push_back(std::move(group));
    }
    return nodes;
  }

  // Switches with the same hosts are rails; switches with equal subtrees are one node.
  [[nodiscard]] std::vector<FabricNode> nodes_of(const std::vector<size_t>& switches,
                                                 int depth) const {
    if (depth == kMaxDepth) return {};
    std::map<std::tuple<std::vector<size_t>, size_t>, std::vector<size_t>> rails;
    for (const size_t id : switches) {
      const bool has_hosts = !switches_.hosts[id].empty() && switches_.below[id].empty();
      rails[{switches_.hosts[id], has_hosts ? 0 : id + 1}].push_back(id);
    }
    std::map<size_t, std::vector<size_t>> in_order;
    for (auto& [key, group] : rails) in_order[group.front()] = group;
    std::vector<FabricNode> nodes;
    std::map<std::string, size_t> seen;
    for (const auto& [first, group] : in_order) {
      FabricNode node = node_of(group, depth);
      const auto [entry, is_new] = seen.try_emplace(looks_of(node), nodes.size());
      if (is_new || !joins_alike_) {
        nodes.push_back(std::move(node));
      } else {
        nodes[entry->second].below_each += node.below_each;
        add_names(nodes[entry->second], node);
      }
    }
    return nodes;
  }

  [[nodiscard]] FabricNode node_of(const std::vector<size_t>& rails, int depth) const {
    const NetworkSwitch& first = topology_.switches[rails.front()];
    FabricNode node{.below_each = rails.size(),
                    .rails = rails.size(),
                    .uplink_gb_per_s = first.uplink_gb_per_s};
    for (const size_t id : rails) node.names.push_back(topology_.switches[id].name);
    node.below = nodes_of(switches_.below[rails.front()], depth + 1);
    for (FabricNode& hosts : groups_of(switches_.hosts[rails.front()]))
      node.below.push_back(std::move(hosts));
    return node;
  }

  static std::string looks_of(const FabricNode& node) {
    std::vector<std::string> below;
    for (const FabricNode& one : node.below) below.push_back(looks_of(one));
    return fmt::format("{} {} {} {} {} ({})", node.is_hosts, node.below_each, node.rails,
                       node.uplink_gb_per_s, node.tree, joined(below, ","));
  }

  static void add_names(FabricNode& to, const FabricNode& from) {
    to.names.insert(to.names.end(), from.names.begin(), from.names.end());
    for (size_t i = 0; i < to.below.size(); ++i) add_names(to.below[i], from.below[i]);
  }

  const Topology& topology_;
  bool joins_alike_;
  SwitchTree switches_;
};

}  // namespace

std::vector<FabricNode> make_fabric(const Topology& topology) {
  std::vector<FabricNode> apart = FabricBuilder(topology, false).build();
  return breadth(apart) <= kMostEdgesApart ? apart : FabricBuilder(topology, true).build();
}

SwitchTree::SwitchTree(const Topology& topology)
    : below(topology.switches.size()), hosts(topology.switches.size()) {
  for (size_t host = 0; host < topology.hosts.size(); ++host) {
    for (const size_t leaf : topology.hosts[host].leaves) hosts[leaf].push_back(host);
  }
  for (size_t i = 0; i < topology.switches.size(); ++i) {
    const size_t above = topology.switches[i].above;
    (above == kNoSwitch ? roots : below[above]).push_back(i);
  }
}

std::vector<std::string> names_of_hosts(const Topology& topology, size_t tree) {
  std::vector<std::string> names;
  for (const TopologyHost& host : topology.hosts) {
    if (host.tree == tree) names.push_back(host.name);
  }
  return names;
}

}  // namespace gxp
