#include "lib/tools/topology/view/plan_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/plan/double_binary_tree.h"

namespace gxp {
namespace {

constexpr size_t kMostLimits = 4;  // that are named

std::string limits_of(const ClusterPlan& plan, size_t kind) {
  const std::vector<uint32_t>& limits = plan.rings[kind].limits;
  std::string text;
  for (size_t i = 0; i < std::min(limits.size(), kMostLimits); ++i) {
    const HostRoutes::Link& link = plan.kinds[kind].links()[limits[i]];
    text += fmt::format("{}{} ({:.4g} GB/s)", i == 0 ? "" : ", ", link.name, link.gb_per_s);
  }
  if (limits.size() > kMostLimits) {
    text += fmt::format(" and {} links more", limits.size() - kMostLimits);
  }
  return text;
}

// The kind of hosts, or the link between switches, that carries least.
std::string limit_of(const Topology& topology, const ClusterPlan& plan) {
  const auto slowest = std::ranges::min_element(plan.rings, {}, &RingPlan::gb_per_s);
  if (plan.traffic.limit && plan.traffic.gb_per_s < slowest->gb_per_s) {
    const NetworkSwitch& leaf = topology.switches[*plan.traffic.limit];
    return fmt::format("{} -> {} ({:.4g} GB/s)", leaf.name,
                       leaf.above == kNoSwitch ? "above" : topology.switches[leaf.above].name,
                       leaf.uplink_gb_per_s);
  }
  return limits_of(plan, size_t(slowest - plan.rings.begin()));
}

// What is taken where the source tells no speeds; "": it tells them.
std::string assumed_speeds(const HostTree& tree) {
  if (!tree.speeds_known)
    return fmt::format(
        "{} has no speeds: PCIe links are assumed to have 12 GB/s, NVLinks 20 GB/s each, and ports "
        "no limit",
        tree.source);
  const auto has_no_speed = [&](PartId port) {
    return info_of<PortInfo>(tree[port]).mbit_per_s == 0;
  };
  if (tree.port_speeds_known || std::ranges::none_of(tree.all_of(PartKind::kPort), has_no_speed))
    return "";
  return fmt::format("{} has no port speeds; ports are assumed not to limit", tree.source);
}

// A tree may be of several hosts that NVLink joins.
size_t hosts_of(const Topology& topology) {
  size_t count = 0;
  for (const TopologyHost& host : topology.hosts)
    count +=
        host.tree == kNoTree ? 1 : std::max<size_t>(1, count_hosts(*topology.trees[host.tree]));
  return count;
}

double bound_of(const ClusterPlan& plan) {
  double bound = plan.rings[0].bound_gb_per_s;
  for (const RingPlan& rings : plan.rings) bound = std::min(bound, rings.bound_gb_per_s);
  const bool is_limited = plan.traffic.limit.has_value();
  return is_limited ? std::min(bound, plan.traffic.gb_per_s) : bound;
}

std::string gpus_of(const HostRoutes& routes, const Ring& ring) {
  std::string text;
  for (const int gpu : ring.gpus) text += (text.empty() ? "" : " ") + routes.name(gpu);
  return text;
}

void add_channels(Report& report, const ClusterPlan& plan) {
  Table& table = report.add_table("channels",
                                  {{"kind"}, {"channel"}, {"gb_per_s", "GB/s"}, {"nic"}, {"gpus"}});
  for (size_t kind = 0; kind < plan.kinds.size(); ++kind) {
    const HostRoutes& routes = plan.kinds[kind];
    int64_t number = 0;
    for (const RingChannel& channel : plan.rings[kind].channels) {
      const int nic = channel.ring.nic;
      table.add_row(kind, number++, channel.gb_per_s,
                    nic < 0 ? Cell() : Cell(routes.name(routes.place_of_nic(nic))),
                    gpus_of(routes, channel.ring));
    }
  }
}

void add_hosts(Report& report, const Topology& topology, const ClusterPlan& plan) {
  Table& table = report.add_table(
      "hosts", {{"place"}, {"host"}, {"kind"}, {"leaf"}, {"above_in_tree_0"}, {"above_in_tree_1"}});
  const DoubleBinaryTree trees(int(plan.host_order.size()));
  const auto host_at = [&](int place) -> const TopologyHost& {
    return topology.hosts[plan.host_order[size_t(place)]];
  };
  for (int place = 0; place < int(plan.host_order.size()); ++place) {
    const TopologyHost& host = host_at(place);
    const auto above = [&](int tree) {
      return place == 0 ? Cell() : Cell(host_at(trees.parent(tree, place)).name);
    };
    table.add_row(place, host.name, host.tree == kNoTree ? Cell() : Cell(int64_t(host.tree)),
                  host.leaves.empty() ? Cell() : Cell(topology.switches[host.leaves[0]].name),
                  above(0), above(1));
  }
}

}  // namespace

Report plan_report(const Topology& topology, const ClusterPlan& plan) {
  Report report{.schema = "gxp.topo-plan/1"};
  report.facts = {{{"topology"}, topology.name},
                  {{"hosts_count", "hosts"}, int64_t(hosts_of(topology))}};
  const auto add = [&](Column column, Cell cell) {
    report.facts.push_back({std::move(column), std::move(cell)});
  };
  if (!plan.rings.empty()) {
    add({"ring_gb_per_s", "ring all-reduce, GB/s"}, plan.ring_gb_per_s);
    add({"bound_gb_per_s", "no rings carry more than"}, bound_of(plan));
    const std::string limit = limit_of(topology, plan);
    add({"limit", "limited by"}, limit.empty() ? Cell() : Cell(limit));
    add({"tree_gb_per_s", "tree all-reduce, GB/s"}, plan.tree_gb_per_s);
    const auto is_told = [](const auto& tree) { return assumed_speeds(*tree).empty(); };
    if (const auto tree = std::ranges::find_if_not(topology.trees, is_told);
        tree != topology.trees.end())
      add({"assumed"}, assumed_speeds(**tree));
    add_channels(report, plan);
  }
  if (topology.hosts.size() == 1) return report;
  add({"tree_depth", "depth of the trees"}, int64_t{plan.tree_depth});
  add({"hops_between_switches", "a ring's hops between switches"},
      plan.traffic.hops_between_switches);
  add({"hops_between_switches_as_given", "in the given order"},
      plan.traffic_as_given.hops_between_switches);
  add_hosts(report, topology, plan);
  return report;
}

}  // namespace gxp
