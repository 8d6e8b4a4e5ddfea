// Checks of RDMA devices and their ports.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/tools/topology/check/doctor_checks.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

constexpr const char* kNoRdma = "there are no RDMA NICs here";

struct RdmaPort {
  std::string name;    // "mlx5_0"; of a device with several ports "mlx5_0/2"
  std::string folder;  // in /sys
  std::string model;   // vendor and device
  const PortInfo* info = nullptr;
};

std::vector<RdmaPort> rdma_ports_of(const DoctorSight& sight) {
  std::vector<RdmaPort> ports;
  for (const PartId id : sight.host.all_of(PartKind::kPort)) {
    const auto& info = std::get<PortInfo>(sight.host[id].info);
    const std::string device = "/sys/class/infiniband/" + info.name;
    if (!info.port || !sight.root.exists(device)) continue;
    const PciIdentity& identity = sight.host[sight.host[id].above].identity;
    const bool several = sight.root.list(device + "/ports").size() > 1;
    ports.push_back({several ? fmt::format("{}/{}", info.name, *info.port) : info.name,
                     fmt::format("{}/ports/{}", device, *info.port),
                     identity.vendor + identity.device, &info});
  }
  return ports;
}

bool is_roce(const RdmaPort& port) { return port.info->link_layer == "Ethernet"; }
bool is_active(const RdmaPort& port) { return port.info->state == "active"; }

enum class GidKind { kNone, kLocal, kRouted };

// The best entry of a port's table that is of RoCE v2.
GidKind best_gid(const DoctorSight& sight, const RdmaPort& port) {
  GidKind best = GidKind::kNone;
  for (const std::string& index : sight.root.list(port.folder + "/gids")) {
    const std::string gid = sight.root.read(port.folder + "/gids/" + index).value_or("");
    const auto type = sight.root.read(port.folder + "/gid_attrs/types/" + index);
    if (gid.find_first_not_of("0:") == std::string::npos || type != "RoCE v2") continue;
    best = std::max(best, gid.starts_with("fe80") ? GidKind::kLocal : GidKind::kRouted);
  }
  return best;
}

// A port may send smaller packets than its interface lets it: as it was before the MTU was raised.
void look_at_packets(const DoctorSight& sight, const RdmaPort& port, DoctorFindings& findings) {
  constexpr int kMostData = 4096;
  const RdmaFacts rdma = sight.process.rdma.value_or(RdmaFacts{});
  for (const RdmaFacts::Port& live : rdma.ports) {
    const bool is_it = live.name == fmt::format("{} port {}", port.info->name, *port.info->port);
    if (is_it && live.packet_bytes < kMostData)
      findings.add(port.name, warning(fmt::format("its packets carry {} bytes, although the MTU "
                                                  "allows {}",
                                                  live.packet_bytes, kMostData)));
  }
}

}  // namespace

Seen look_at_verbs(const DoctorSight& sight) {
  if (!has_rdma(sight)) return ok(kNoRdma);
  if (!sight.root.exists("/dev/null")) return not_recorded("/dev is");
  const std::vector<std::string> devices = sight.root.list("/dev/infiniband");
  if (std::ranges::none_of(devices, [](const auto& name) { return name.starts_with("uverbs"); }))
    return problem("there are RDMA devices in /sys, but no /dev/infiniband/uverbs*");
  if (!sight.process.rdma) return ok("/dev/infiniband is there");
  const RdmaFacts& rdma = *sight.process.rdma;
  if (rdma.ports.empty()) return problem("this process " + rdma.obstacle);
  std::string ports;
  for (const RdmaFacts::Port& port : rdma.ports)
    ports += fmt::format("{} ({}), ", port.name, port.address);
  return ok(ports + "and 16 MiB could be registered");
}

Seen look_at_port_state(const DoctorSight& sight) {
  const std::vector<RdmaPort> ports = rdma_ports_of(sight);
  if (ports.empty()) return ok(kNoRdma);
  const bool any_active = std::ranges::any_of(ports, is_active);
  DoctorFindings findings;
  for (const RdmaPort& port : ports) {
    // A host often has ports without a cable among others.
    if (!is_active(port))
      findings.add(port.name, {any_active ? DoctorVerdict::kWarning : DoctorVerdict::kProblem,
                               "it is " + (port.info->state.empty() ? "in an unknown state"
                                                                    : port.info->state)});
  }
  return findings.seen_or("all ports are active");
}

// /sys does not tell what a port could do, but ports of the same model do.
Seen look_at_port_rate(const DoctorSight& sight) {
  const std::vector<RdmaPort> ports = rdma_ports_of(sight);
  if (ports.empty()) return ok(kNoRdma);
  std::map<std::string, double> fastest;
  for (const RdmaPort& port : ports) {
    double& most = fastest[port.model];
    if (is_active(port)) most = std::max(most, port.info->mbit_per_s);
  }
  DoctorFindings findings;
  for (const RdmaPort& port : ports) {
    const double most = fastest[port.model];
    if (is_active(port) && port.info->mbit_per_s < most)
      findings.add(port.name, problem(fmt::format("{:g} Gbit/s, others of its model {:g}",
                                                  port.info->mbit_per_s / 1000, most / 1000)));
  }
  return findings.seen_or("active ports of a model have the same rate");
}

Seen look_at_gid_table(const DoctorSight& sight) {
  DoctorFindings findings;
  for (const RdmaPort& port : rdma_ports_of(sight)) {
    if (!is_roce(port) || !is_active(port)) continue;
    if (sight.root.list(port.folder + "/gids").empty()) {
      findings.add(port.name, unseen("its GIDs are not in /sys (another network namespace)"));
      continue;
    }
    const GidKind best = best_gid(sight, port);
    if (best == GidKind::kNone) findings.add(port.name, problem("it has no RoCE v2 GID"));
    if (best == GidKind::kLocal)
      findings.add(port.name, warning("its RoCE v2 GIDs are all link-local"));
  }
  return findings.seen_or("each active RoCE port, if any, has a GID of RoCE v2 with an address");
}

Seen look_at_mtu(const DoctorSight& sight) {
  constexpr long kLargePackets = 4200;  // 4096 bytes of data and the headers of RoCE v2
  DoctorFindings findings;
  for (const RdmaPort& port : rdma_ports_of(sight)) {
    if (!is_roce(port) || !is_active(port) || port.info->interface.empty()) continue;
    const auto mtu =
        sight.root.read_number(fmt::format("/sys/class/net/{}/mtu", port.info->interface));
    if (!mtu) findings.add(port.info->interface, not_recorded("its MTU is"));
    if (mtu && *mtu < kLargePackets)
      findings.add(port.info->interface, warning(fmt::format("the MTU is {}", *mtu)));
    if (mtu && *mtu >= kLargePackets) look_at_packets(sight, port, findings);
  }
  return findings.seen_or("large enough at all active RoCE interfaces, if any");
}

}  // namespace gxp
