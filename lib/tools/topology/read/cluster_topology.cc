// topology_of() of a cluster.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/tools/topology/read/cluster_file.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

double sum_of_nics(const HostGroup& group) {
  double gb_per_s = 0;
  for (const Nic& nic : group.inside.nics) gb_per_s += nic.gb_per_s;
  return gb_per_s;
}

class ClusterBuilder {
 public:
  explicit ClusterBuilder(const ClusterDescription& cluster) : cluster_(cluster) {
    topology_.name = cluster.name;
    topology_.source = "cluster TOML";
    for (const HostGroup& group : cluster.groups) {
      hosts_ += group.hosts;
      if (cluster.network.rails) rails_ = std::max(rails_, group.inside.nics.size());
    }
  }

  Topology build(std::vector<std::shared_ptr<HostTree>> trees) {
    topology_.trees = std::move(trees);
    if (hosts_ > int64_t(Topology::kMaxHosts))
      fail(ErrorKind::kConfig, "{}: more than {} hosts", cluster_.name, Topology::kMaxHosts);
    add_switches();
    int64_t host = 0;
    for (size_t group = 0; group < cluster_.groups.size(); ++group) {
      if (!topology_.trees.empty()) name_tree(group);
      for (int i = 0; i < cluster_.groups[group].hosts; ++i, ++host) add_host(group, host);
    }
    return std::move(topology_);
  }

 private:
  void name_tree(size_t group) {
    HostTree& tree = *topology_.trees[group];
    if (tree.name.empty()) tree.name = cluster_.groups[group].name;
    if (tree.source.empty()) tree.source = "as the file describes it";
  }

  // The leaf switch of a host's NICs of one rail.
  [[nodiscard]] size_t leaf_of(int64_t host, size_t rail) const {
    const auto leaf = leaf_of_host(cluster_.network, host);
    return leaf ? 1 + size_t(*leaf) * rails_ + rail : 0;
  }

  void add_switches() {
    if (hosts_ < 2) return;
    const NetworkDescription& network = cluster_.network;
    check_leaves(network, hosts_, cluster_.name);
    int64_t leaves = 0;
    for (int64_t host = 0; host < hosts_; ++host)
      leaves = std::max<int64_t>(leaves, leaf_of_host(network, host).value_or(-1) + 1);
    topology_.switches.push_back({.name = leaves == 0 ? "network" : "spine"});
    if (leaves == 0) return;
    if (leaves * int64_t(rails_) >= int64_t(Topology::kMaxSwitches))
      fail(ErrorKind::kConfig, "{}: more than {} switches", cluster_.name, Topology::kMaxSwitches);
    for (size_t i = 0; i < size_t(leaves) * rails_; ++i)
      topology_.switches.push_back({.name = fmt::format("leaf {}", i), .above = 0});
  }

  void add_host(size_t group, int64_t host) {
    const HostGroup& like = cluster_.groups[group];
    topology_.hosts.push_back({.name = fmt::format("{} {}", like.name, host), .tree = group});
    if (hosts_ < 2) return;
    const size_t rails = rails_ == 1 ? 1 : std::min(rails_, like.inside.nics.size());
    for (size_t rail = 0; rail < rails; ++rail) {
      const size_t leaf = leaf_of(host, rail);
      topology_.hosts.back().leaves.push_back(leaf);
      const double gb_per_s = rails_ == 1 ? sum_of_nics(like) : like.inside.nics[rail].gb_per_s;
      if (leaf > 0)
        topology_.switches[leaf].uplink_gb_per_s += gb_per_s / cluster_.network.oversubscription;
    }
  }

  const ClusterDescription& cluster_;
  Topology topology_;
  int64_t hosts_ = 0;
  size_t rails_ = 1;
};

}  // namespace

Topology topology_of(const ClusterDescription& cluster,
                     std::vector<std::shared_ptr<HostTree>> trees) {
  return ClusterBuilder(cluster).build(std::move(trees));
}

}  // namespace gxp
