#include "lib/tools/topology/view/topology_report.h"

#include <array>
#include <utility>
#include <variant>

#include "lib/tools/topology/read/channel_graphs.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/view/path_report.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

std::string_view kind_word(PartKind kind) {
  constexpr std::array<std::string_view, 8> kWords = {
      "numa_node", "host_bridge", "switch", "gpu", "nic", "port", "nvswitch", "pcie_device"};
  return kWords[size_t(kind)];
}

Cell text_or_null(const std::string& text) { return text.empty() ? Cell() : Cell(text); }
Cell positive_or_null(double value) { return value > 0 ? Cell(value) : Cell(); }
Cell positive_or_null(int value) { return value > 0 ? Cell(int64_t{value}) : Cell(); }
Cell bytes_or_null(uint64_t bytes) { return bytes > 0 ? Cell(int64_t(bytes)) : Cell(); }

// The known one of several values; at most one is known.
template <class... Values>
Cell known_of(const std::optional<Values>&... values) {
  Cell cell;
  const auto take = [&](const auto& value) {
    if (!value) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(*value)>, int>)
      cell = int64_t{*value};
    else
      cell = *value;
  };
  (take(values), ...);
  return cell;
}

// One part, and what a row of devices[] is made from.
struct ReportedPart {
  const HostTree& host;
  const std::vector<std::string>& names;
  size_t tree;
  PartId id;
  const Part& part = host[id];
  const NumaNodeInfo& node = info_of<NumaNodeInfo>(part);
  const GpuInfo& gpu = info_of<GpuInfo>(part);
  const PortInfo& port = info_of<PortInfo>(part);
  const PcieLink& link = part.link;
  const PcieRate& rate = link.now.gt_per_s > 0 || link.now.lanes > 0 ? link.now : link.most;

  [[nodiscard]] Cell name_of(PartId other) const {
    return other == kNoPart ? Cell() : Cell(names[other]);
  }
  // A list with an entry for each cache.
  template <class Value>
  [[nodiscard]] Cell caches(Value CacheInfo::*value) const {
    if (!std::holds_alternative<NumaNodeInfo>(part.info)) return {};
    std::vector<int64_t> list;
    for (const CacheInfo& cache : node.caches) list.push_back(int64_t(cache.*value));
    return list;
  }
};

struct DeviceColumn {
  const char* key;
  Cell (*cell)(const ReportedPart& one);
};

// Columns that do not apply to a part's kind are null.
using One = const ReportedPart&;
constexpr auto kDeviceColumns = std::to_array<DeviceColumn>({
    {"id", [](One one) { return one.name_of(one.id); }},
    {"kind", [](One one) { return Cell(std::string(kind_word(one.part.kind))); }},
    {"name",
     [](One one) {
       const std::string name = given_name(one.part);
       return name.empty() ? one.name_of(one.id) : Cell(name);
     }},
    {"tree", [](One one) { return Cell(int64_t(one.tree)); }},
    {"above", [](One one) { return one.name_of(one.part.above); }},
    {"numa_node",
     [](One one) { return one.name_of(one.host.find_above(one.id, PartKind::kNumaNode)); }},
    {"bus_id", [](One one) { return text_or_null(one.part.bus_id); }},
    {"class", [](One one) { return text_or_null(one.part.identity.class_code); }},
    {"vendor", [](One one) { return text_or_null(one.part.identity.vendor); }},
    {"device", [](One one) { return text_or_null(one.part.identity.device); }},
    {"pcie.gt_per_s", [](One one) { return positive_or_null(one.rate.gt_per_s); }},
    {"pcie.lanes", [](One one) { return positive_or_null(one.rate.lanes); }},
    {"pcie.most_gt_per_s", [](One one) { return positive_or_null(one.link.most.gt_per_s); }},
    {"pcie.most_lanes", [](One one) { return positive_or_null(one.link.most.lanes); }},
    {"number", [](One one) { return known_of(one.node.number, one.gpu.number, one.port.number); }},
    {"model",
     [](One one) {
       const std::string& nic = info_of<NicInfo>(one.part).model_name;
       for (const std::string& name :
            {one.node.model_name, one.node.vendor, one.gpu.model_name, one.gpu.gcn, nic}) {
         if (!name.empty()) return Cell(name);
       }
       return Cell();
     }},
    {"memory_bytes",
     [](One one) { return bytes_or_null(one.node.memory_bytes + one.gpu.memory_bytes); }},
    {"cpus", [](One one) { return text_or_null(cpus_of(one.part).to_list()); }},
    {"cores", [](One one) { return positive_or_null(one.node.cores); }},
    {"caches.level", [](One one) { return one.caches(&CacheInfo::level); }},
    {"caches.bytes", [](One one) { return one.caches(&CacheInfo::bytes); }},
    {"caches.count", [](One one) { return one.caches(&CacheInfo::count); }},
    {"compute_capability",
     [](One one) { return one.gpu.gcn.empty() ? known_of(one.gpu.compute_capability) : Cell(); }},
    {"rank", [](One one) { return known_of(one.gpu.rank); }},
    {"gpu_direct", [](One one) { return known_of(one.gpu.gpu_direct, one.port.gpu_direct); }},
    {"gbit_per_s", [](One one) { return positive_or_null(one.port.mbit_per_s / 1000); }},
    {"interface", [](One one) { return text_or_null(one.port.interface); }},
    {"link_layer", [](One one) { return text_or_null(one.port.link_layer); }},
    {"state", [](One one) { return text_or_null(one.port.state); }},
});

void add_devices(Table& table, const HostTree& host, const std::vector<std::string>& names,
                 size_t tree) {
  for (PartId id = 0; id < host.parts().size(); ++id) {
    const ReportedPart one{host, names, tree, id};
    std::vector<Cell> row;
    for (const DeviceColumn& column : kDeviceColumns) row.push_back(column.cell(one));
    table.add_row(std::move(row));
  }
}

void add_links(Table& table, const HostTree& host, const std::vector<std::string>& names,
               size_t tree) {
  for (const CrossLink& link : host.cross_links()) {
    table.add_row(to_string(link.kind), names[link.from],
                  link.to == kNoPart ? Cell() : Cell(names[link.to]), text_or_null(link.target),
                  link.count, positive_or_null(link.gb_per_s), tree);
  }
}

void add_channels(Report& report, const std::vector<ChannelGraph>& graphs) {
  if (graphs.empty()) return;
  Table& table = report.add_table("channels", {{"graph"},
                                               {"pattern"},
                                               {"channel"},
                                               {"gpus"},
                                               {"nets"},
                                               {"intra_gb_s"},
                                               {"inter_gb_s"},
                                               {"type_intra"},
                                               {"type_inter"}});
  for (const ChannelGraph& graph : graphs) {
    for (size_t channel = 0; channel < graph.channels.size(); ++channel) {
      std::vector<int64_t> gpus, nets;
      for (const ChannelDevice& device : graph.channels[channel].devices)
        (device.kind == ChannelDevice::Kind::kGpu ? gpus : nets).push_back(device.dev);
      table.add_row(known_of(graph.id),
                    graph.pattern ? Cell(std::string(name_of_pattern(*graph.pattern))) : Cell(),
                    channel, gpus, nets, known_of(graph.speed_intra), known_of(graph.speed_inter),
                    text_or_null(graph.type_intra), text_or_null(graph.type_inter));
    }
  }
}

void add_texts(Report& report, const char* name, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  Table& table = report.add_table(name, {{"text"}});
  for (const std::string& text : texts) table.add_row(text);
}

void add_network(Report& report, const Topology& topology) {
  Table& hosts = report.add_table("hosts", {{"name"}, {"tree"}, {"leaf"}});
  const auto switch_or_null = [&](size_t index) {
    return index == kNoSwitch ? Cell() : Cell(topology.switches[index].name);
  };
  for (const TopologyHost& host : topology.hosts) {
    std::string leaves;
    for (const size_t leaf : host.leaves)
      leaves += (leaves.empty() ? "" : ",") + topology.switches[leaf].name;
    hosts.add_row(host.name, host.tree == kNoTree ? Cell() : Cell(int64_t(host.tree)),
                  text_or_null(leaves));
  }
  Table& switches =
      report.add_table("switches", {{"name"}, {"kind"}, {"above"}, {"uplink_gb_per_s"}});
  for (const NetworkSwitch& one : topology.switches) {
    switches.add_row(one.name, one.is_block ? "block" : "switch", switch_or_null(one.above),
                     positive_or_null(one.uplink_gb_per_s));
  }
}

}  // namespace

Report topology_report(const Topology& topology) {
  Report report{.schema = "gxp.topo/1"};
  report.facts = {{{"topology"}, topology.name}, {{"source"}, topology.source}};
  Table& devices = report.add_table("devices", {});
  for (const DeviceColumn& column : kDeviceColumns) devices.columns.push_back({column.key});
  Table& links = report.add_table(
      "links", {{"kind"}, {"from"}, {"to"}, {"target"}, {"count"}, {"gb_per_s_each"}, {"tree"}});
  Table& paths = report.add_table("paths", path_columns());
  std::vector<std::string> absent;
  std::vector<std::string> notes = topology.notes;
  for (size_t tree = 0; tree < topology.trees.size(); ++tree) {
    const HostTree& host = *topology.trees[tree];
    const std::vector<std::string> names = names_of_parts(host);
    add_devices(devices, host, names, tree);
    add_links(links, host, names, tree);
    const NcclPaths found(host);
    add_paths(paths, NcclRoutes(found), tree);
    absent.insert(absent.end(), host.absent.begin(), host.absent.end());
    notes.insert(notes.end(), host.notes.begin(), host.notes.end());
  }
  add_network(report, topology);
  add_channels(report, topology.channel_graphs);
  add_texts(report, "absent", absent);
  add_texts(report, "notes", notes);
  return report;
}

}  // namespace gxp
