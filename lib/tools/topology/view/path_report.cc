#include "lib/tools/topology/view/path_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

std::string hop_end(const std::vector<std::string>& names, PartId part) {
  return part == kNoPart ? "NVSwitch" : names[part];
}

bool has_xgmi(const HostTree& host) {
  return std::ranges::any_of(
      host.cross_links(), [](const CrossLink& link) { return link.kind == CrossLinkKind::kXgmi; });
}

std::string link_name(const HostTree& host, LinkKind kind) {
  return kind == LinkKind::kNvLink && has_xgmi(host) ? "xGMI" : std::string(to_string(kind));
}

Cell known_rate(double gb_per_s) {
  Cell cell;
  if (gb_per_s > 0) cell = rounded(gb_per_s);
  return cell;
}

std::string limiting_hop(const std::vector<std::string>& names, const NcclPath& path) {
  const int limit = path.limiting_hop();
  if (limit < 0) return "";
  const PathHop& hop = path.hops[size_t(limit)];
  return fmt::format("{} -> {}", hop_end(names, hop.from), hop_end(names, hop.to));
}

// The parts between the ends that are of a kind, by name.
std::string passed(const HostTree& host, const NcclPath& path, PartKind kind) {
  const std::vector<std::string> names = names_of_parts(host);
  std::string list;
  for (size_t i = 0; i + 1 < path.hops.size(); ++i) {
    const PartId part = path.hops[i].to;
    if (part == kNoPart || host[part].kind != kind) continue;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", names[part]);
  }
  return list;
}

// Why a path has its type: "one PCIe switch, PCIe switch 0000:08:00.0".
std::string explain_type(const HostTree& host, const NcclPath& path) {
  const std::string switches = passed(host, path, PartKind::kPcieSwitch);
  const std::string nodes = passed(host, path, PartKind::kNumaNode);
  switch (path.type) {
    case PathType::kLoc:
      return path.hops.empty() ? "the device itself" : "ports of one NIC";
    case PathType::kNvl:
      return path.hops.size() == 1 ? "NVLinks join the two" : "NVLinks to NVSwitches";
    case PathType::kNvb:
      return "NVLinks through " + passed(host, path, PartKind::kGpu) + ", which relays" +
             (has_xgmi(host) ? "; RCCL, unlike NCCL, lets no GPU relay" : "");
    case PathType::kC2c:
      return "a chip-to-chip link";
    case PathType::kPix:
      return switches.empty() ? "the two are on one PCIe device" : "through " + switches;
    case PathType::kPxb:
      return "several PCIe switches: " + switches;
    case PathType::kPhb:
      return nodes.empty() ? "PCIe to the NUMA node" : "PCIe through " + nodes;
    case PathType::kSys:
      return nodes.empty() ? "from one NUMA node to another" : "through " + nodes;
    case PathType::kP2c:
      return "PCIe and a chip-to-chip link, through " + nodes;
    case PathType::kPxn:
      return "NVLink to " + passed(host, path, PartKind::kGpu) + ", which is nearest to the NIC";
    default:
      return "no path connects the two";
  }
}

void add_fact(Report& report, std::string key, std::string heading, Cell value) {
  report.facts.push_back({{std::move(key), std::move(heading)}, std::move(value)});
}

void add_verdict(Report& report, const std::string& key, const std::string& heading,
                 const RouteVerdict& verdict) {
  add_fact(report, key + ".answer", heading, std::string(to_string(verdict.answer)));
  if (!verdict.rule.empty()) add_fact(report, key + ".rule", "  because", verdict.rule);
}

void add_verdicts(Report& report, const NcclRoutes& routes, PartId from, PartId to) {
  const HostTree& host = routes.paths().host();
  const bool sends = host[from].kind == PartKind::kGpu;
  const bool receives = host[to].kind == PartKind::kGpu;
  if (sends && receives)
    return add_verdict(report, "peer_to_peer", "peer-to-peer", routes.peer_to_peer(from, to));
  const PartId gpu = sends ? from : to;
  const PartId port = sends ? to : from;
  if (host[gpu].kind != PartKind::kGpu || host[port].kind == PartKind::kNumaNode) return;
  add_verdict(report, "gpu_direct_send", "GPUDirect RDMA, sending",
              routes.gpu_direct(gpu, port, NcclRoutes::Direction::kSend));
  add_verdict(report, "gpu_direct_receive", "GPUDirect RDMA, receiving",
              routes.gpu_direct(gpu, port, NcclRoutes::Direction::kReceive));
  add_verdict(report, "flush", "flush after receiving", routes.needs_flush(gpu, port));
}

// The ports on the way whose speed is not told.
std::string ports_without_speed(const HostTree& host, const NcclPath& path) {
  const std::vector<std::string> names = names_of_parts(host);
  std::string list;
  for (const PathHop& hop : path.hops) {
    for (const PartId part : {hop.from, hop.to}) {
      const bool is_port = part != kNoPart && host[part].kind == PartKind::kPort;
      if (is_port && info_of<PortInfo>(host[part]).mbit_per_s == 0)
        list += (list.empty() ? "" : ", ") + names[part];
    }
  }
  return list;
}

// Why the bandwidth of a path is not known; "": it is.
std::string unknown_speed(const HostTree& host, const NcclPath& path) {
  if (!host.places_known || !host.speeds_known) return fmt::format("{} has no speeds", host.source);
  const std::string ports = host.port_speeds_known ? "" : ports_without_speed(host, path);
  return ports.empty() ? "" : fmt::format("{} has no speed for {}", host.source, ports);
}

Cell told_rate(bool is_told, double gb_per_s) {
  Cell cell;
  if (is_told) cell = rounded(gb_per_s);
  return cell;
}

void add_rate(Report& report, const HostTree& host, const NcclPath& path) {
  const std::string why_unknown = unknown_speed(host, path);
  const bool is_told = why_unknown.empty();
  add_fact(report, "bandwidth_gb_s", "GB/s, as NCCL counts", told_rate(is_told, path.gb_per_s));
  if (!is_told) return add_fact(report, "unknown", "GB/s", "unknown: " + why_unknown);
  if (path.physical_gb_per_s() > 0)
    add_fact(report, "physical_gb_s", "GB/s, physical", rounded(path.physical_gb_per_s()));
  add_fact(report, "limiting_hop", "limited by", limiting_hop(names_of_parts(host), path));
  if (const std::string ports = ports_without_speed(host, path); !ports.empty())
    add_fact(report, "assumed", "assumed",
             fmt::format("10 Gbit/s, NCCL's default, for {}, whose speed is unknown", ports));
}

void add_hops(Report& report, const HostTree& host, const NcclPath& path) {
  const std::vector<std::string> names = names_of_parts(host);
  Table& table = report.add_table("hops", {{"from"},
                                           {"to"},
                                           {"link"},
                                           {"gb_s", "GB/s"},
                                           {"physical_gb_s", "physical GB/s"},
                                           {"limits"}});
  const bool is_told = tells_speed(host, path);
  for (size_t i = 0; i < path.hops.size(); ++i) {
    const PathHop& hop = path.hops[i];
    const bool hop_is_told = tells_speed(host, {.hops = {hop}});
    table.add_row(hop_end(names, hop.from), hop_end(names, hop.to), link_name(host, hop.kind),
                  told_rate(hop_is_told, hop.gb_per_s), known_rate(hop.physical_gb_per_s),
                  is_told && int(i) == path.limiting_hop() ? "limits" : "");
  }
}

}  // namespace

double rounded(double gb_per_s) { return std::round(gb_per_s * 1e4) / 1e4; }

bool tells_speed(const HostTree& host, const NcclPath& path) {
  return unknown_speed(host, path).empty();
}

PartId find_end(const NcclPaths& paths, std::string_view name) {
  const HostTree& host = paths.host();
  PartId part = find_part(host, name);
  if (part == kNoPart)
    fail(ErrorKind::kUsage, "find \"{}\" in {}: no such device; gxp topo lists the names", name,
         host.name);
  if (host[part].kind == PartKind::kNic) {
    const auto port = std::ranges::find_if(host[part].below, [&](PartId below) {
      return paths.distance(below, below).type == PathType::kLoc;
    });
    if (port != host[part].below.end()) part = *port;
  }
  if (paths.distance(part, part).type == PathType::kLoc) return part;
  for (const std::string& note : paths.graph().notes) {
    if (note.find(names_of_parts(host)[part]) != std::string::npos)
      fail(ErrorKind::kUsage, "find paths of \"{}\": {}", name, note);
  }
  fail(ErrorKind::kUsage,
       "find paths of \"{}\": it is a {}; NCCL has paths between GPUs, ports and NUMA nodes", name,
       to_string(host[part].kind));
}

void add_path(Report& report, const NcclRoutes& routes, PartId from, PartId to) {
  const HostTree& host = routes.paths().host();
  const std::vector<std::string> names = names_of_parts(host);
  const NcclPath path = routes.paths().find(from, to);
  const NcclRoute used = routes.find(from, to);
  add_fact(report, "from", "", names[from]);
  add_fact(report, "to", "", names[to]);
  if (!host.places_known) {
    add_fact(report, "type", "", "unknown");
    add_fact(report, "rule", "  because",
             fmt::format("{} does not describe how devices are connected", host.source));
    return add_verdicts(report, routes, from, to);
  }
  add_fact(report, "type", "", std::string(to_string(path.type)));
  add_fact(report, "rule", "  because", explain_type(host, path));
  add_rate(report, host, path);
  if (used.via != kNoPart || used.type != path.type) {
    const NcclPath way = routes.path(from, to);
    add_fact(report, "used.type", "NCCL uses", std::string(to_string(used.type)));
    add_fact(report, "used.rule", "  because", explain_type(host, way));
    add_fact(report, "used.bandwidth_gb_s", "  GB/s",
             told_rate(tells_speed(host, way), used.gb_per_s));
  }
  add_verdicts(report, routes, from, to);
  add_hops(report, host, path);
}

std::vector<Column> path_columns() {
  return {{"from"},         {"to"},   {"type"},      {"bandwidth_gb_s"},
          {"limiting_hop"}, {"tree"}, {"used.type"}, {"used.bandwidth_gb_s"},
          {"used.via"}};
}

void add_paths(Table& table, const NcclRoutes& routes, size_t tree) {
  const NcclPaths& paths = routes.paths();
  const HostTree& host = paths.host();
  const std::vector<std::string> names = names_of_parts(host);
  const std::vector<PartId> ends = paths.devices();
  for (const PartId from : ends) {
    for (const PartId to : ends) {
      if (from == to) continue;
      const NcclPath path = paths.find(from, to);
      const NcclRoute used = routes.find(from, to);
      const auto type = [&](PathType known) {
        return std::string(host.places_known ? to_string(known) : "unknown");
      };
      const bool is_told = tells_speed(host, path);
      table.add_row(names[from], names[to], type(path.type), told_rate(is_told, path.gb_per_s),
                    is_told ? limiting_hop(names, path) : "", tree, type(used.type),
                    told_rate(is_told, used.gb_per_s), used.via == kNoPart ? "" : names[used.via]);
    }
  }
}

}  // namespace gxp
