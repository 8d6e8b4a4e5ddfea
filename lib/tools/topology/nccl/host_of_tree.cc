#include "lib/tools/topology/nccl/host_of_tree.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/topo/model/gpu_models.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

constexpr double kUnknownPcieGtPerS = 8;
constexpr int kUnknownPcieLanes = 16;

VertexKind vertex_kind(PartKind kind) {
  switch (kind) {
    case PartKind::kNumaNode:
      return VertexKind::kNumaNode;
    case PartKind::kHostBridge:
    case PartKind::kPcieSwitch:
      return VertexKind::kPcieSwitch;
    case PartKind::kGpu:
      return VertexKind::kGpu;
    case PartKind::kNic:
      return VertexKind::kNic;
    default:
      return VertexKind::kPcieDevice;
  }
}

class Converter {
 public:
  Converter(const HostTree& tree, const LinkLatencies& latencies, double inter_numa_gb_per_s)
      : tree_(tree),
        latencies_(latencies),
        inter_numa_gb_per_s_(inter_numa_gb_per_s),
        vertex_of_(tree.parts().size(), kNoVertex) {
    host_.notes = tree.notes;
  }

  HostTopology convert() {
    for (const PartId root : tree_.roots()) add_part(root, std::nullopt);
    number_gpus();
    std::vector<double> to_switches(tree_.parts().size(), 0);
    for (const CrossLink& link : tree_.cross_links()) add_cross_link(link, to_switches);
    for (const PartId gpu : gpus_) join_nvswitch(vertex_of_[gpu], to_switches[gpu]);
    return std::move(host_);
  }

 private:
  static constexpr VertexId kNoVertex = ~VertexId{0};

  [[nodiscard]] std::string at(SourceLocation place) const { return at_place(tree_.name, place); }
  void note(SourceLocation place, std::string_view what) {
    host_.notes.push_back(fmt::format("{}: {}", at(place), what));
  }
  void join(VertexId a, VertexId b, LinkKind kind, double gb_per_s, double latency_s) {
    host_.graph.add_cable(
        {.from = a, .to = b, .kind = kind, .gb_per_s = gb_per_s, .latency_s = latency_s});
  }

  void add_part(PartId id, std::optional<VertexId> above) {
    const Part& part = tree_[id];
    if (part.kind == PartKind::kPort || part.kind == PartKind::kNvSwitch) return;
    if (part.kind == PartKind::kNumaNode) {
      vertex_of_[id] = add_numa_node(part);
    } else {
      check_bus(id);
      const VertexKind kind = vertex_kind(part.kind);
      vertex_of_[id] = host_.graph.add_vertex(
          kind, part.bus_id.empty() ? fmt::format("{} {}", to_string(kind), nameless_[kind]++)
                                    : fmt::format("{} {}", to_string(kind), part.bus_id));
      const bool is_local = part.kind == PartKind::kNic && !is_on_pcie(tree_, id);
      if (above) {
        join(vertex_of_[id], *above, LinkKind::kPcie,
             is_local ? kNcclLocalGbPerS : pcie_gb_per_s(part), latencies_.pcie_s);
      }
      if (part.kind == PartKind::kGpu) gpus_.push_back(id);
      if (part.kind == PartKind::kNic) add_nic(part, vertex_of_[id]);
    }
    for (const PartId below : part.below) add_part(below, vertex_of_[id]);
  }

  VertexId add_numa_node(const Part& part) {
    const auto& info = std::get<NumaNodeInfo>(part.info);
    if (!info.number) note(part.place, "the NUMA node has no numaid; counted instead");
    const VertexId node = host_.graph.add_vertex(
        VertexKind::kNumaNode,
        fmt::format("NUMA node {}", info.number.value_or(int(numa_nodes_.size()))));
    for (size_t other = 0; other < numa_nodes_.size(); ++other) {
      if (host_hashes_[other] != info.host_hash) continue;  // another host, which NVLink joins
      join(numa_nodes_[other], node, LinkKind::kInterNuma,
           inter_numa_gb_per_s_ > 0 ? inter_numa_gb_per_s_ : nccl_inter_numa_gb_per_s(info),
           latencies_.inter_numa_s);
    }
    numa_nodes_.push_back(node);
    host_hashes_.push_back(info.host_hash);
    return node;
  }

  void check_bus(PartId id) {
    const Part& part = tree_[id];
    if (!part.bus_id.empty() && !bus_ids_.emplace(host_hash_of(tree_, id), part.bus_id).second) {
      fail(ErrorKind::kCorrupt,
           "read topology {}: <pci busid=\"{}\"> occurs twice; bus ids are unique in a host",
           at(part.place), part.bus_id);
    }
  }

  double pcie_gb_per_s(const Part& part) {
    PcieRate rate = part.link.most.gt_per_s > 0 ? part.link.most : part.link.now;
    if (rate.gt_per_s == 0) {
      note(part.place, fmt::format("link_speed \"{}\" is unknown; 8 GT/s assumed",
                                   std::string_view(part.link.speed_text).substr(0, 40)));
      rate.gt_per_s = kUnknownPcieGtPerS;
    }
    if (rate.lanes == 0) {
      note(part.place, "link_width is unknown; 16 assumed");
      rate.lanes = kUnknownPcieLanes;
    }
    if (part.kind == PartKind::kPcieDevice && part.identity.class_code.empty())
      note(part.place, "the device has no class; treated as neither GPU nor NIC");
    return rate.lanes * rate.gt_per_s * kGbPerTransfer;
  }

  void add_nic(const Part& part, VertexId vertex) {
    double mbit_per_s = 0;
    std::string name;
    for (const PartId below : part.below) {
      const auto* port = std::get_if<PortInfo>(&tree_[below].info);
      if (port == nullptr) continue;
      mbit_per_s += port->mbit_per_s;
      if (name.empty()) name = port->name.substr(0, 64);
    }
    host_.nics.push_back({vertex, mbit_per_s / 8000});
    host_.graph.rename(vertex, name.empty() ? fmt::format("NIC {}", host_.nics.size() - 1) : name);
  }

  void number_gpus() {
    sort_by_number(tree_, gpus_);
    for (const PartId gpu : gpus_) {
      host_.graph.rename(vertex_of_[gpu], fmt::format("GPU {}", host_.gpus.size()));
      host_.gpus.push_back(vertex_of_[gpu]);
    }
  }

  [[nodiscard]] double gb_per_s_of(const CrossLink& link) const {
    if (link.gb_per_s > 0) return link.gb_per_s * link.count;
    const auto& gpu = info_of<GpuInfo>(tree_[link.from]);
    return link.count *
           (link.kind == CrossLinkKind::kXgmi
                ? rccl_xgmi_gb_per_s(gpu.gcn)
                : nccl_nvlink_gb_per_s(compute_capability_of(tree_[link.from]).value_or(0)));
  }

  void add_cross_link(const CrossLink& link, std::vector<double>& to_switches) {
    const VertexId from = vertex_of_[link.from];
    const VertexId to = link.to == kNoPart ? kNoVertex : vertex_of_[link.to];
    if (from == kNoVertex) return;  // an NVSwitch's own side
    if (link.kind == CrossLinkKind::kPcie) {
      if (to != kNoVertex && to != from)
        join(from, to, LinkKind::kPcie, kNcclLocalGbPerS, latencies_.pcie_s);
      return;
    }
    const double gb_per_s = gb_per_s_of(link);
    if (leads_to_nvswitch(tree_, link)) {
      to_switches[link.from] += gb_per_s;
    } else {
      add_gpu_link(link, gb_per_s);
    }
  }

  // Between two GPUs each end lists its own direction; a NUMA node's end is not listed.
  void add_gpu_link(const CrossLink& link, double gb_per_s) {
    const VertexId from = vertex_of_[link.from];
    PartId to = link.to;
    if (link.target_class.starts_with(kCpuBridgeClass))  // POWER
      to = tree_.find_above(link.from, PartKind::kNumaNode);
    if (to != kNoPart && tree_[to].kind == PartKind::kNumaNode) {
      const bool is_chip = link.kind == CrossLinkKind::kChipToChip;
      return join(from, vertex_of_[to], is_chip ? LinkKind::kChipToChip : LinkKind::kNvLink,
                  gb_per_s, latencies_.nvlink_s);
    }
    if (to == kNoPart || to == link.from) {
      return note(link.place, fmt::format("<{} target=\"{}\"> leads to {}; ignored",
                                          link.kind == CrossLinkKind::kXgmi ? "xgmi" : "nvlink",
                                          link.target.substr(0, 40),
                                          to == kNoPart ? "no device here" : "the GPU itself"));
    }
    host_.graph.add_link({.from = from,
                          .to = vertex_of_[to],
                          .kind = LinkKind::kNvLink,
                          .gb_per_s = gb_per_s,
                          .latency_s = latencies_.nvlink_s});
  }

  void join_nvswitch(VertexId gpu, double gb_per_s) {
    if (gb_per_s == 0) return;
    if (!nvswitch_) nvswitch_ = host_.graph.add_vertex(VertexKind::kNvSwitch, "NVSwitch");
    join(gpu, *nvswitch_, LinkKind::kNvLink, gb_per_s, latencies_.nvlink_s);
  }

  const HostTree& tree_;
  const LinkLatencies& latencies_;
  double inter_numa_gb_per_s_;  // 0: the processor's
  HostTopology host_;
  std::vector<VertexId> vertex_of_;  // by part
  std::vector<VertexId> numa_nodes_;
  std::vector<std::string> host_hashes_;  // of these nodes
  std::vector<PartId> gpus_;
  std::set<std::pair<std::string_view, std::string>> bus_ids_;  // with the host's hash
  std::map<VertexKind, int> nameless_;                          // parts without a bus id
  std::optional<VertexId> nvswitch_;
};

}  // namespace

HostTopology host_topology_of(const HostTree& tree, const LinkLatencies& latencies,
                              double inter_numa_gb_per_s) {
  return Converter(tree, latencies, inter_numa_gb_per_s).convert();
}

}  // namespace gxp
