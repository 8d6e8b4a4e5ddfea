#include "lib/topo/nccl/rank_ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

bool is_usable(const HostTree& host, PartId port) {
  const PortInfo& info = info_of<PortInfo>(host[port]);
  return info.port && info.has_guid() && info.state != "down" && is_on_pcie(host, host[port].above);
}

// All that no other of them is nearer than.
std::vector<PartId> nearest_of(const NcclRoutes& routes, PartId gpu, std::vector<PartId> ports) {
  const auto farness = [&](PartId port) {
    const NcclRoute route = routes.find(gpu, port);
    return std::tuple(route.type, -route.gb_per_s);
  };
  if (ports.empty()) return ports;
  const auto least = std::ranges::min(ports, {}, farness);
  std::erase_if(ports, [&](PartId port) { return farness(port) > farness(least); });
  return ports;
}

}  // namespace

RankPorts ports_of_gpu(const NcclRoutes& routes, PartId gpu) {
  const HostTree& host = routes.paths().host();
  const auto drop_others = [&](std::vector<PartId> ports) {
    std::erase_if(ports, [&](PartId port) { return !is_usable(host, port); });
    return ports;
  };
  std::vector<PartId> ports = drop_others(routes.local_ports(gpu));
  if (ports.empty()) ports = nearest_of(routes, gpu, drop_others(host.all_of(PartKind::kPort)));
  if (ports.empty()) return {.why = "no active RDMA port is on PCIe"};
  const std::string type(to_string(routes.paths().distance(gpu, ports[0]).type));
  return {ports, fmt::format("nearest to {}: {}", names_of_parts(host)[gpu], type)};
}

RankPorts ports_of_cpus(const HostTree& host, const CpuSet& cpus) {
  const std::vector<PartId> nodes = host.all_of(PartKind::kNumaNode);
  if (nodes.size() < 2) return {.why = "the host has one NUMA node"};
  const auto own =
      std::ranges::find_if(nodes, [&](PartId node) { return cpus.within(cpus_of(host[node])); });
  if (cpus.empty() || own == nodes.end())
    return {.why = fmt::format("CPUs {} are not of one NUMA node", cpus.to_list())};
  const std::string name = names_of_parts(host)[*own];
  RankPorts found{.why = fmt::format("at {}, as CPUs {} are", name, cpus.to_list())};
  for (const PartId port : host.all_of(PartKind::kPort)) {
    if (is_usable(host, port) && host.find_above(port, PartKind::kNumaNode) == *own)
      found.ports.push_back(port);
  }
  if (found.ports.empty()) found.why = fmt::format("no active RDMA port is at {}", name);
  return found;
}

}  // namespace gxp
