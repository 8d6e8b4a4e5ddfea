#include "lib/inspect/view/topology_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "lib/inspect/view/path_report.h"
#include "lib/topo/model/cpu_set.h"

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

template <class Value>
Cell cell_of(const std::optional<Value>& value) {
  if (!value) return {};
  if constexpr (std::is_same_v<Value, int>)
    return int64_t{*value};
  else
    return *value;
}

// One part's row: columns that are not named are null, as they do not apply to its kind.
class DeviceRow {
 public:
  explicit DeviceRow(const std::vector<Column>& columns)
      : columns_(columns), cells_(columns.size()) {}
  Cell& operator[](std::string_view key) {
    const auto column = std::ranges::find(columns_, key, &Column::key);
    return cells_[size_t(column - columns_.begin())];
  }
  [[nodiscard]] std::vector<Cell> take() && { return std::move(cells_); }

 private:
  const std::vector<Column>& columns_;
  std::vector<Cell> cells_;
};

void add_own(DeviceRow& row, const NumaNodeInfo& node) {
  const auto cpus = CpuSet::parse_map(node.affinity);
  row["number"] = cell_of(node.number);
  row["model"] = text_or_null(node.model_name.empty() ? node.vendor : node.model_name);
  row["memory_bytes"] = bytes_or_null(node.memory_bytes);
  if (cpus && !cpus->empty()) row["cpus"] = cpus->to_list();
  row["cores"] = positive_or_null(node.cores);
  std::vector<int64_t> levels, bytes, counts;
  for (const CacheInfo& cache : node.caches) {
    levels.push_back(cache.level);
    bytes.push_back(int64_t(cache.bytes));
    counts.push_back(cache.count);
  }
  row["caches.level"] = std::move(levels);
  row["caches.bytes"] = std::move(bytes);
  row["caches.count"] = std::move(counts);
}

void add_own(DeviceRow& row, const GpuInfo& gpu) {
  row["number"] = cell_of(gpu.number);
  row["model"] = text_or_null(gpu.model_name.empty() ? gpu.gcn : gpu.model_name);
  row["memory_bytes"] = bytes_or_null(gpu.memory_bytes);
  if (gpu.gcn.empty()) row["compute_capability"] = cell_of(gpu.compute_capability);
  row["rank"] = cell_of(gpu.rank);
  row["gpu_direct"] = cell_of(gpu.gpu_direct);
}

void add_own(DeviceRow& row, const NicInfo& nic) { row["model"] = text_or_null(nic.model_name); }

void add_own(DeviceRow& row, const PortInfo& port) {
  row["number"] = cell_of(port.number);
  row["gpu_direct"] = cell_of(port.gpu_direct);
  row["gbit_per_s"] = positive_or_null(port.mbit_per_s / 1000);
  row["interface"] = text_or_null(port.interface);
  row["link_layer"] = text_or_null(port.link_layer);
  row["state"] = text_or_null(port.state);
}

void add_own(DeviceRow&, const std::monostate&) {}

const PcieRate& rate_of(const PcieLink& link) {
  return link.now.gt_per_s > 0 || link.now.lanes > 0 ? link.now : link.most;
}

std::string name_of(const Part& part, const std::string& id) {
  if (const auto* port = std::get_if<PortInfo>(&part.info); port != nullptr && !port->name.empty())
    return port->name;
  return part.name.empty() ? id : part.name;
}

std::vector<Column> device_columns() {
  constexpr std::array kKeys = {"id",
                                "kind",
                                "name",
                                "tree",
                                "above",
                                "numa_node",
                                "bus_id",
                                "class",
                                "vendor",
                                "device",
                                "pcie.gt_per_s",
                                "pcie.lanes",
                                "pcie.most_gt_per_s",
                                "pcie.most_lanes",
                                "number",
                                "model",
                                "memory_bytes",
                                "cpus",
                                "cores",
                                "caches.level",
                                "caches.bytes",
                                "caches.count",
                                "compute_capability",
                                "rank",
                                "gpu_direct",
                                "gbit_per_s",
                                "interface",
                                "link_layer",
                                "state"};
  std::vector<Column> columns;
  for (const char* key : kKeys) columns.push_back({key});
  return columns;
}

void add_devices(Table& table, const HostTree& host, const std::vector<std::string>& names,
                 size_t tree) {
  const auto name_or_null = [&](PartId id) { return id == kNoPart ? Cell() : Cell(names[id]); };
  for (PartId id = 0; id < host.parts().size(); ++id) {
    const Part& part = host[id];
    const PcieRate& rate = rate_of(part.link);
    DeviceRow row(table.columns);
    row["id"] = names[id];
    row["kind"] = std::string(kind_word(part.kind));
    row["name"] = name_of(part, names[id]);
    row["tree"] = int64_t(tree);
    row["above"] = name_or_null(part.above);
    row["numa_node"] = name_or_null(host.find_above(id, PartKind::kNumaNode));
    row["bus_id"] = text_or_null(part.bus_id);
    row["class"] = text_or_null(part.identity.class_code);
    row["vendor"] = text_or_null(part.identity.vendor);
    row["device"] = text_or_null(part.identity.device);
    row["pcie.gt_per_s"] = positive_or_null(rate.gt_per_s);
    row["pcie.lanes"] = positive_or_null(rate.lanes);
    row["pcie.most_gt_per_s"] = positive_or_null(part.link.most.gt_per_s);
    row["pcie.most_lanes"] = positive_or_null(part.link.most.lanes);
    std::visit([&](const auto& info) { add_own(row, info); }, part.info);
    table.add_row(std::move(row).take());
  }
}

void add_links(Table& table, const HostTree& host, const std::vector<std::string>& names,
               size_t tree) {
  for (const CrossLink& link : host.cross_links()) {
    table.add_row({std::string(to_string(link.kind)), names[link.from],
                   link.to == kNoPart ? Cell() : Cell(names[link.to]), text_or_null(link.target),
                   int64_t{link.count}, positive_or_null(link.gb_per_s), int64_t(tree)});
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
      table.add_row({cell_of(graph.id),
                     graph.pattern ? Cell(std::string(name_of_pattern(*graph.pattern))) : Cell(),
                     int64_t(channel), gpus, nets, cell_of(graph.speed_intra),
                     cell_of(graph.speed_inter), text_or_null(graph.type_intra),
                     text_or_null(graph.type_inter)});
    }
  }
}

void add_texts(Report& report, const char* name, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  Table& table = report.add_table(name, {{"text"}});
  for (const std::string& text : texts) table.add_row({text});
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
    hosts.add_row({host.name, host.tree == kNoTree ? Cell() : Cell(int64_t(host.tree)),
                   text_or_null(leaves)});
  }
  Table& switches =
      report.add_table("switches", {{"name"}, {"kind"}, {"above"}, {"uplink_gb_per_s"}});
  for (const NetworkSwitch& one : topology.switches) {
    switches.add_row({one.name, std::string(one.is_block ? "block" : "switch"),
                      switch_or_null(one.above), positive_or_null(one.uplink_gb_per_s)});
  }
}

}  // namespace

Report topology_report(const Topology& topology) {
  Report report{.schema = "gxp.topo/1"};
  report.facts = {{{"topology"}, topology.name}, {{"source"}, topology.source}};
  Table& devices = report.add_table("devices", device_columns());
  Table& links = report.add_table(
      "links", {{"kind"}, {"from"}, {"to"}, {"target"}, {"count"}, {"gb_per_s_each"}, {"tree"}});
  Table& paths = report.add_table("paths", path_columns());
  std::vector<std::string> absent;
  std::vector<std::string> notes = topology.notes;
  for (size_t tree = 0; tree < topology.trees.size(); ++tree) {
    const HostTree& host = topology.trees[tree];
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
