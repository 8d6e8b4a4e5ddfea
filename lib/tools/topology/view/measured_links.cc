#include "lib/tools/topology/view/measured_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "lib/tools/topology/view/part_words.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

PartId node_of_cpu(const HostTree& host, int cpu) {
  if (cpu < 0) return kNoPart;
  CpuSet wanted;
  wanted.add(cpu);
  for (const PartId id : host.all_of(PartKind::kNumaNode)) {
    if (wanted.within(cpus_of(host[id]))) return id;
  }
  return kNoPart;
}

bool leaves_host(const MeasuredLink& link) { return link.from_cpu >= 0 && link.to_cpu < 0; }

// The slowest of the links between the same places over the same transport.
struct Slowest {
  int links = 0;
  double latency_s = 0;
  double gb_per_s = 0;
  double link_gb_per_s = 0;

  void add(const MeasuredLink& link) {
    const bool slower = links++ == 0 || link.gb_per_s < gb_per_s;
    if (slower) gb_per_s = link.gb_per_s;
    if (slower) link_gb_per_s = link.link_gb_per_s;
    latency_s = std::max(latency_s, link.latency_s);
  }

  [[nodiscard]] std::string words() const {
    std::string text = fmt::format("{:.3g} GB/s", gb_per_s);
    if (link_gb_per_s > 0) text += fmt::format(" ({:.3g} with headers)", link_gb_per_s);
    text += fmt::format(", {:.3g} us", latency_s * 1e6);
    return links > 1 ? text + fmt::format(", the slowest of {}", links) : text;
  }
};

struct LinkEnds {         // kNoPart: not on this graph
  PartId from = kNoPart;  // the NUMA node, and of a link to another host the port
  PartId to = kNoPart;
};

LinkEnds ends_of(const HostTree& host, const MeasuredLink& link) {
  if (!leaves_host(link)) return {node_of_cpu(host, link.from_cpu), node_of_cpu(host, link.to_cpu)};
  const PartId port = link.interface.empty() ? kNoPart : find_part(host, link.interface);
  return {port != kNoPart && host[port].kind == PartKind::kPort ? port : kNoPart, kNoPart};
}

}  // namespace

void put_on(HostTree& host, std::span<const MeasuredLink> links) {
  const std::vector<std::string> names = names_of_parts(host);
  std::map<std::tuple<PartId, PartId, std::string>, Slowest> of_parts;
  std::map<std::string, Slowest> elsewhere;  // by interface
  for (const MeasuredLink& link : links) {
    const LinkEnds ends = ends_of(host, link);
    if (ends.from != kNoPart && (ends.to != kNoPart || leaves_host(link)))
      of_parts[{ends.from, ends.to, link.transport}].add(link);
    else if (leaves_host(link) && !link.interface.empty())
      elsewhere[link.interface].add(link);
  }
  for (const auto& [place, slowest] : of_parts) {
    const auto& [from, to, transport] = place;
    const std::string way = to == kNoPart ? "to other hosts"
                            : to == from  ? "within"
                                          : "to " + names[to];
    const double mbit_per_s = info_of<PortInfo>(host[from]).mbit_per_s;
    const std::string rate =
        mbit_per_s > 0 ? fmt::format("; the port: {:.3g} GB/s", mbit_per_s / 8000) : "";
    host[from].measured.push_back(
        fmt::format("{} {}: {}{}", transport, way, slowest.words(), rate));
  }
  for (const auto& [interface, slowest] : elsewhere)
    host.notes.push_back(
        fmt::format("{}, by which other hosts were reached, is not on the graph: {}", interface,
                    slowest.words()));
}

Table table_of(std::span<const MeasuredLink> links, const HostTree* host) {
  Table table{.name = "measured",
              .columns = {{"from", "from rank"},
                          {"to", "to rank"},
                          {"from_host", "from host"},
                          {"to_host", "to host"},
                          {"same_host", "one host"},
                          {"transport"},
                          {"latency_us", "latency us"},
                          {"bandwidth_gb_s", "GB/s"},
                          {"interface"},
                          {"link_gb_s", "with headers"},
                          {"from_part", "from part"},
                          {"to_part", "to part"}},
              .rows = {}};
  const auto names = host == nullptr ? std::vector<std::string>() : names_of_parts(*host);
  const auto name_of = [&](PartId id) { return id == kNoPart ? Cell() : Cell(names[id]); };
  for (const MeasuredLink& link : links) {
    const LinkEnds ends = host == nullptr ? LinkEnds() : ends_of(*host, link);
    const bool has_interface = !link.interface.empty();
    table.add_row(
        link.from, link.to, link.from_host, link.to_host, link.one_host, link.transport,
        link.latency_s * 1e6, link.gb_per_s, has_interface ? Cell(link.interface) : Cell(),
        has_interface ? Cell(link.link_gb_per_s) : Cell(), name_of(ends.from), name_of(ends.to));
  }
  return table;
}

}  // namespace gxp
