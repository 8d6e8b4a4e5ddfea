#include "lib/tools/topology/view/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/plural.h"
#include "lib/tools/topology/view/part_words.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

constexpr size_t kMostPlainDevices = 4;
constexpr size_t kMostPorts = 4;

std::string pcie_label(const PcieRate& rate) {
  if (rate.gt_per_s <= 0 || rate.lanes <= 0) return "";
  const auto* const row =
      std::ranges::find(kPcieGenerations, rate.gt_per_s, &PcieGeneration::gt_per_s);
  if (row == kPcieGenerations.end()) return fmt::format("{:g} GT/s x{}", rate.gt_per_s, rate.lanes);
  return fmt::format("PCIe {} x{}", row - kPcieGenerations.begin() + 1, rate.lanes);
}

bool has_rate(const PcieRate& rate) { return rate.gt_per_s > 0 && rate.lanes > 0; }

Wire wire_of(const PcieLink& link) {
  return {.gb_per_s = physical_pcie_gb_per_s(link),
          .label = pcie_label(has_rate(link.most) ? link.most : link.now)};
}

std::string format_gbit(double mbit_per_s) { return fmt::format("{:g} Gbit/s", mbit_per_s / 1000); }

std::string describe_port(const PortInfo& port) {
  std::string text = port.mbit_per_s > 0 ? format_gbit(port.mbit_per_s) : "";
  if (port.link_layer == "InfiniBand") text += " IB";
  if (port.link_layer == "EFA") text += " EFA";
  if (!port.state.empty() && port.state != "active") text += " (" + port.state + ")";
  return text;
}

BoxKind box_kind(PartKind kind) {
  switch (kind) {
    case PartKind::kNumaNode:
      return BoxKind::kNumaNode;
    case PartKind::kGpu:
      return BoxKind::kGpu;
    case PartKind::kNic:
    case PartKind::kPort:
      return BoxKind::kNic;
    case PartKind::kPcieSwitch:
    case PartKind::kHostBridge:
      return BoxKind::kSwitch;
    default:
      return BoxKind::kDevice;
  }
}

std::string describe_node(const NumaNodeInfo& node) {
  return join_words({node.model_name.empty() ? node.vendor : node.model_name,
                     node.cores > 0 ? fmt::format("{} cores", node.cores) : "",
                     node.memory_bytes > 0 ? format_bytes(node.memory_bytes) : ""});
}

class DiagramBuilder {
 public:
  explicit DiagramBuilder(const HostTree& host) : host_(host), names_(names_of_parts(host)) {}

  Diagram build() {
    box_of_.assign(host_.parts().size(), kNoBox);
    for (const PartId root : host_.roots()) add_root(root);
    add_gpu_links(host_, box_of_, diagram_);
    choose_usual_wire();
    for (Box& box : diagram_.boxes) say_wire(box);
    describe_whole();
    return std::move(diagram_);
  }

 private:
  // A depth of kMaxDepth bounds the recursion, here and below.
  [[nodiscard]] bool shows(PartId id) const {
    const Part& part = host_[id];
    if (part.kind == PartKind::kNvSwitch) return false;
    if (part.kind != PartKind::kPcieSwitch && part.kind != PartKind::kHostBridge) return true;
    return std::ranges::any_of(part.below, [&](PartId below) { return shows(below); });
  }

  [[nodiscard]] std::vector<PartId> shown_below(PartId id) const {
    std::vector<PartId> shown;
    for (const PartId below : host_[id].below) {
      if (host_[below].kind == PartKind::kHostBridge) {
        const std::vector<PartId> inner = shown_below(below);
        shown.insert(shown.end(), inner.begin(), inner.end());
      } else if (shows(below)) {
        shown.push_back(below);
      }
    }
    return shown;
  }

  void add_root(PartId id) {
    if (host_[id].kind == PartKind::kNumaNode) {
      diagram_.roots.push_back(add_box(id, {}, ""));
      return;
    }
    if (!shows(id)) return;
    if (outside_ == kNoBox) {
      outside_ = diagram_.boxes.size();
      diagram_.boxes.push_back({.kind = BoxKind::kNumaNode, .name = "of no known NUMA node"});
      diagram_.roots.push_back(outside_);
    }
    add_inside(outside_,
               host_[id].kind == PartKind::kHostBridge ? shown_below(id) : std::vector<PartId>{id});
  }

  // `wire` and `through` are of the bridges above that have been left out.
  BoxId add_box(PartId id, Wire wire, const std::string& through) {
    const Part& part = host_[id];
    const Wire own = wire_of(part.link);
    if (through.empty() || (own.gb_per_s > 0 && own.gb_per_s < wire.gb_per_s) || wire.gb_per_s == 0)
      wire = own;
    const std::vector<PartId> inside = shown_below(id);
    if (part.kind == PartKind::kPcieSwitch && inside.size() == 1)
      return add_box(inside[0], wire, through + "through bridge " + part.bus_id + "\n");
    const BoxId box = diagram_.boxes.size();
    box_of_[id] = box;
    diagram_.boxes.push_back({.kind = box_kind(part.kind),
                              .part = id,
                              .name = name_of(id),
                              .lines = lines_of(part),
                              .wire = wire});
    Box& added = diagram_.boxes.back();
    added.tip = fmt::format("{} {}\n{}{}", to_string(part.kind), added.name, through,
                            joined(added.lines, "\n"));
    if (added.kind == BoxKind::kNumaNode || added.kind == BoxKind::kSwitch) add_inside(box, inside);
    return box;
  }

  void add_inside(BoxId box, const std::vector<PartId>& parts) {
    const auto is_plain = [&](PartId id) { return host_[id].kind == PartKind::kPcieDevice; };
    const auto plain = size_t(std::ranges::count_if(parts, is_plain));
    for (const PartId id : parts) {
      if (plain > kMostPlainDevices && is_plain(id)) continue;
      const BoxId added = add_box(id, {}, "");
      diagram_.boxes[box].inside.push_back(added);
    }
    if (plain <= kMostPlainDevices) return;
    diagram_.boxes[box].inside.push_back(diagram_.boxes.size());
    diagram_.boxes.push_back({.name = fmt::format("{} others", plain), .lines = {"PCIe devices"}});
  }

  // Bus ids have a line of their own, so no name needs one.
  [[nodiscard]] std::string name_of(PartId id) const {
    const Part& part = host_[id];
    if (part.kind != PartKind::kNic)
      return part.bus_id.empty() || !names_[id].ends_with(part.bus_id)
                 ? names_[id]
                 : std::string(to_string(part.kind));
    const std::vector<PartId>& ports = part.below;
    if (ports.size() == 1) return names_[ports[0]];
    if (!part.name.empty()) return part.name;
    return ports.empty() ? "NIC" : fmt::format("NIC, {} ports", ports.size());
  }

  [[nodiscard]] std::vector<std::string> lines_of_nic(const Part& part) const {
    std::vector<std::string> lines;
    for (const PartId id : part.below) {
      if (host_[id].kind != PartKind::kPort) continue;
      const std::string text = describe_port(info_of<PortInfo>(host_[id]));
      lines.push_back(part.below.size() == 1 ? text : fmt::format("{} {}", names_[id], text));
    }
    if (lines.size() > kMostPorts) {
      const size_t more = lines.size() - kMostPorts + 1;
      lines.resize(kMostPorts - 1);
      lines.push_back(fmt::format("and {} more", more));
    }
    return lines;
  }

  [[nodiscard]] std::vector<std::string> lines_of(const Part& part) const {
    std::vector<std::string> lines;
    if (part.kind == PartKind::kNic) lines = lines_of_nic(part);
    if (const auto* node = std::get_if<NumaNodeInfo>(&part.info))
      lines.push_back(describe_node(*node));
    if (const auto* port = std::get_if<PortInfo>(&part.info)) lines.push_back(describe_port(*port));
    if (const auto* gpu = std::get_if<GpuInfo>(&part.info)) {
      const bool says_vendor = gpu->model_name.starts_with("NVIDIA ");
      lines.push_back(gpu->model_name.substr(says_vendor ? 7 : 0));
    }
    lines.push_back(part.bus_id);
    std::erase(lines, "");
    const auto add_measured = [&](const Part& of) {
      for (const std::string& line : of.measured) lines.push_back("measured: " + line);
    };
    add_measured(part);
    if (part.kind != PartKind::kNic) return lines;
    for (const PartId port : part.below) add_measured(host_[port]);
    return lines;
  }

  // The most frequent one; of those the fastest.
  void choose_usual_wire() {
    std::map<std::string, std::pair<int, double>> seen;
    for (const Box& box : diagram_.boxes) {
      if (box.wire.label.empty()) continue;
      auto& [count, gb_per_s] = seen[box.wire.label];
      ++count;
      gb_per_s = box.wire.gb_per_s;
    }
    const auto most =
        std::ranges::max_element(seen, {}, [](const auto& row) { return row.second; });
    if (most != seen.end())
      diagram_.usual_wire = {.gb_per_s = most->second.second, .label = most->first};
  }

  void say_wire(Box& box) const {
    if (box.part == kNoPart) return;
    const PcieLink& link = host_[box.part].link;
    if (!box.wire.label.empty() && box.wire.label != diagram_.usual_wire.label) {
      box.lines.push_back(
          fmt::format("{}, {} GB/s", box.wire.label, format_gb_per_s(box.wire.gb_per_s)));
    }
    if (has_rate(link.most) && has_rate(link.now) && pcie_label(link.now) != pcie_label(link.most))
      box.lines.push_back(fmt::format("now at {}", pcie_label(link.now)));
  }

  void describe_whole() {
    diagram_.title = host_.name.empty() ? "host" : title_of(host_.name);
    std::vector<std::string> facts;
    for (const PartKind kind : {PartKind::kNumaNode, PartKind::kGpu, PartKind::kNic}) {
      const size_t count = host_.all_of(kind).size();
      if (count > 0) facts.push_back(counted(count, to_string(kind)));
    }
    facts.push_back(host_.source);
    diagram_.subtitle = join_words(facts);
    const std::vector<PartId> nodes = host_.all_of(PartKind::kNumaNode);
    if (nodes.size() < 2) return;
    const auto& node = info_of<NumaNodeInfo>(host_[nodes[0]]);
    diagram_.inter_numa = "between NUMA nodes";
    if (cpu_vendor(node) != CpuVendor::kUnknown)
      diagram_.inter_numa +=
          fmt::format(": {} GB/s in NCCL's model", format_gb_per_s(nccl_inter_numa_gb_per_s(node)));
  }

  const HostTree& host_;
  std::vector<std::string> names_;
  std::vector<BoxId> box_of_;  // by part
  BoxId outside_ = kNoBox;     // the box for what lies below no NUMA node
  Diagram diagram_;
};

}  // namespace

std::string format_gb_per_s(double gb_per_s) {
  return gb_per_s < 1000 ? fmt::format("{:.3g}", gb_per_s) : fmt::format("{:.0f}", gb_per_s);
}

std::string title_of(const std::string& name) {
  const size_t slash = name.find_last_of('/');
  return slash == std::string::npos || slash + 1 == name.size() ? name : name.substr(slash + 1);
}

Diagram make_diagram(const HostTree& host) { return DiagramBuilder(host).build(); }

}  // namespace gxp
