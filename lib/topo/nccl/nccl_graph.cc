#include "lib/topo/nccl/nccl_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/topo/model/gpu_models.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

class GraphBuilder {
 public:
  explicit GraphBuilder(const HostTree& host) : host_(host), names_(names_of_parts(host)) {
    graph_.node_of.assign(host.parts().size(), kNoNcclNode);
    left_out_.resize(host.parts().size());
  }

  NcclGraph build() {
    for (const PartId part : host_.all_of(PartKind::kNumaNode)) add(NcclNodeKind::kCpu, part);
    leave_out_unnumbered(PartKind::kGpu, &GpuInfo::rank, "rank");
    leave_out_unnumbered(PartKind::kPort, &PortInfo::number, "number (dev)");
    for (const PartKind kind : {PartKind::kGpu, PartKind::kNic, PartKind::kPort}) {
      for (const PartId part : host_.all_of(kind)) {
        if (!left_out_[part]) add_device(part);
      }
    }
    for (const CrossLink& link : host_.cross_links()) add_cross_link(link);
    flatten_broadcom_switches();
    join_cpus();
    for (NcclNodeId node = 0; node < graph_.nodes.size(); ++node) put_upward_last(node);
    note_one_sided_links();
    return std::move(graph_);
  }

 private:
  NcclNodeId add(NcclNodeKind kind, PartId part) {
    const auto id = NcclNodeId(graph_.nodes.size());
    graph_.nodes.push_back({.kind = kind, .part = part});
    up_.push_back(kNoNcclNode);
    if (part != kNoPart) graph_.node_of[part] = id;
    return id;
  }

  template <class Info>
  void leave_out_unnumbered(PartKind kind, std::optional<int> Info::*number,
                            std::string_view what) {
    const auto numbered = [&](PartId part) {
      return (info_of<Info>(host_[part]).*number).has_value();
    };
    const std::vector<PartId> parts = host_.all_of(kind);
    if (std::ranges::none_of(parts, numbered)) return;
    for (const PartId part : parts) {
      if (numbered(part)) continue;
      left_out_[part] = true;
      graph_.notes.push_back(
          fmt::format("NCCL leaves {} out: it has no {}, and others have one", names_[part], what));
    }
  }

  void add_device(PartId part) {
    if (host_[part].kind == PartKind::kGpu) return join_above(add(NcclNodeKind::kGpu, part), part);
    if (host_[part].kind == PartKind::kNic) return add_nic(part);
    const double mbit_per_s = info_of<PortInfo>(host_[part]).mbit_per_s;
    const PartId nic = host_.find_above(part, PartKind::kNic);
    if (nic == kNoPart) return join_above(add(NcclNodeKind::kPort, part), part);
    join_both(
        graph_.node_of[nic], add(NcclNodeKind::kPort, part),
        {.type = PathType::kLoc,
         .kind = LinkKind::kNetwork,
         .gb_per_s = host_.port_speeds_known || mbit_per_s > 0 ? nccl_port_gb_per_s(mbit_per_s)
                                                               : kNcclLocalGbPerS,
         .physical_gb_per_s = mbit_per_s / 8000});
  }

  // One node for all NICs of a NUMA node that have no device. RCCL, as NCCL once did, makes one of
  // the functions of a device.
  [[nodiscard]] std::string nic_key(PartId part) const {
    std::string bus_id = host_[part].bus_id;
    if (!is_on_pcie(host_, part))
      return fmt::format("below part {}", host_.find_above(part, PartKind::kNumaNode));
    if (bus_id.empty()) return fmt::format("part {}", part);
    if (host_.dialect == "2") bus_id.back() = '0';
    return bus_id;
  }

  void add_nic(PartId part) {
    const auto [known, is_new] = nics_.try_emplace(nic_key(part), NcclNodeId{0});
    if (is_new) {
      known->second = add(NcclNodeKind::kNic, part);
      join_above(known->second, part);
    }
    graph_.node_of[part] = known->second;
  }

  // The node of the switch or NUMA node that NCCL hangs the part on, made when it is needed.
  NcclNodeId node_above(PartId part) {
    PartId above = host_[part].above;
    while (above != kNoPart && host_[above].kind == PartKind::kHostBridge)
      above = host_[above].above;
    if (above == kNoPart) return kNoNcclNode;
    if (graph_.node_of[above] == kNoNcclNode) join_above(add(NcclNodeKind::kPcie, above), above);
    return graph_.node_of[above];
  }

  void join_above(NcclNodeId node, PartId part) {
    const NcclNodeId above = node_above(part);
    if (above == kNoNcclNode) return;
    const bool has_device = is_on_pcie(host_, part) || host_[part].kind == PartKind::kGpu;
    const PcieLink& link = host_[part].link;
    up_[node] = above;
    join_both(node, above,
              {.gb_per_s = has_device ? nccl_pcie_gb_per_s(link) : kNcclLocalGbPerS,
               .physical_gb_per_s = has_device ? physical_pcie_gb_per_s(link) : 0});
  }

  // Links of one kind to one node add up; by falling bandwidth, equal ones in their order.
  void join(NcclNodeId from, NcclLink link) {
    std::vector<NcclLink>& links = graph_.nodes[from].links;
    auto place = std::ranges::find_if(
        links, [&](const NcclLink& l) { return l.to == link.to && l.type == link.type; });
    if (place == links.end()) {
      place = links.insert(place, link);
    } else {
      place->gb_per_s += link.gb_per_s;
      place->physical_gb_per_s += link.physical_gb_per_s;
    }
    for (; place != links.begin() && (place - 1)->gb_per_s < place->gb_per_s; --place)
      std::iter_swap(place, place - 1);
  }

  void join_both(NcclNodeId a, NcclNodeId b, NcclLink link) {
    link.to = b;
    join(a, link);
    link.to = a;
    join(b, link);
  }

  [[nodiscard]] NcclLink rates_of(const CrossLink& link) const {
    NcclLink result{.gb_per_s = link.gb_per_s, .physical_gb_per_s = link.gb_per_s};
    const auto& gpu = info_of<GpuInfo>(host_[link.from]);
    switch (link.kind) {
      case CrossLinkKind::kNvLink: {
        const int capability = compute_capability_of(host_[link.from]).value_or(0);
        result.type = PathType::kNvl;
        result.kind = LinkKind::kNvLink;
        // NCCL asks the driver for the capability; of a made-up GPU there is only what its source
        // says.
        if (capability > 0 || link.gb_per_s == 0)
          result.gb_per_s = nccl_nvlink_gb_per_s(capability);
        if (link.gb_per_s == 0) result.physical_gb_per_s = physical_nvlink_gb_per_s(capability);
        break;
      }
      case CrossLinkKind::kXgmi:
        result.type = PathType::kNvl;
        result.kind = LinkKind::kNvLink;
        result.gb_per_s = rccl_xgmi_gb_per_s(gpu.gcn);
        if (link.gb_per_s == 0) result.physical_gb_per_s = physical_xgmi_gb_per_s(gpu.gcn);
        break;
      case CrossLinkKind::kChipToChip:
        result.type = PathType::kC2c;
        result.kind = LinkKind::kChipToChip;
        break;
      case CrossLinkKind::kPcie:
        result.type = PathType::kLoc;
        result.gb_per_s = kNcclLocalGbPerS;
        break;
    }
    result.gb_per_s *= link.count;
    result.physical_gb_per_s *= link.count;
    return result;
  }

  // NCCL goes by the class of the target; a source that says none names a part.
  [[nodiscard]] NcclNodeId far_end(const CrossLink& link) {
    const PartKind kind = link.to == kNoPart ? PartKind::kPcieDevice : host_[link.to].kind;
    const std::string& type = link.target_class;
    const bool is_link_of_gpus =
        link.kind == CrossLinkKind::kNvLink || link.kind == CrossLinkKind::kXgmi;
    if (link.kind == CrossLinkKind::kChipToChip || type.starts_with(kCpuBridgeClass) ||
        (is_link_of_gpus && kind == PartKind::kNumaNode)) {
      const PartId node = host_.find_above(link.from, PartKind::kNumaNode);
      return node == kNoPart ? kNoNcclNode : graph_.node_of[node];
    }
    const bool names_part = !is_link_of_gpus || type.starts_with("0x03") || kind == PartKind::kGpu;
    if (names_part) return link.to == kNoPart ? kNoNcclNode : graph_.node_of[link.to];
    if (type.empty() && kind != PartKind::kNvSwitch) return kNoNcclNode;
    if (nvswitch_ == kNoNcclNode) nvswitch_ = add(NcclNodeKind::kNvSwitch, kNoPart);
    return nvswitch_;
  }

  void add_cross_link(const CrossLink& link) {
    const NcclNodeId from = graph_.node_of[link.from];
    if (from == kNoNcclNode) return;
    const NcclNodeId to = far_end(link);
    if (to == kNoNcclNode) {
      graph_.notes.push_back(fmt::format("the {} of {} to {} leads to no device known to NCCL",
                                         to_string(link.kind), names_[link.from],
                                         link.target.empty() ? "nothing" : link.target));
      return;
    }
    NcclLink rates = rates_of(link);
    rates.to = to;
    // A bridge or GPU lists its own direction; the others list none.
    const NcclNodeKind kind = graph_.nodes[to].kind;
    if (kind == NcclNodeKind::kNvSwitch || kind == NcclNodeKind::kCpu)
      join_both(from, to, rates);
    else
      join(from, rates);
  }

  [[nodiscard]] int generation(NcclNodeId node, SwitchLevel level) const {
    if (graph_.nodes[node].kind != NcclNodeKind::kPcie) return 0;
    return broadcom_generation(host_[graph_.nodes[node].part].identity, level);
  }

  void flatten_broadcom_switches() {
    std::vector<bool> done(graph_.nodes.size());
    for (NcclNodeId upper = 0; upper < graph_.nodes.size(); ++upper) {
      const int wanted = done[upper] ? 0 : generation(upper, SwitchLevel::kUpper);
      if (wanted == 0) continue;
      done[upper] = true;
      std::vector<NcclNodeId> lower;
      for (const NcclLink& link : graph_.nodes[upper].links) {
        if (!done[link.to] && generation(link.to, SwitchLevel::kLower) == wanted)
          lower.push_back(link.to);
      }
      for (const NcclNodeId node : lower) {
        done[node] = true;
        take_out(node, upper);
      }
    }
  }

  void take_out(NcclNodeId lower, NcclNodeId upper) {
    const auto leads_to = [](NcclNodeId node) {
      return [node](const NcclLink& link) { return link.to == node; };
    };
    std::erase_if(graph_.nodes[upper].links, leads_to(lower));
    for (const NcclLink& link : std::exchange(graph_.nodes[lower].links, {})) {
      if (link.to == upper) continue;
      graph_.nodes[upper].links.push_back(link);
      std::vector<NcclLink>& back = graph_.nodes[link.to].links;
      if (const auto found = std::ranges::find_if(back, leads_to(lower)); found != back.end())
        found->to = upper;
      if (up_[link.to] == lower) up_[link.to] = upper;
    }
    graph_.node_of[graph_.nodes[lower].part] = upper;
  }

  void join_cpus() {
    const auto info = [&](NcclNodeId node) -> const NumaNodeInfo& {
      return info_of<NumaNodeInfo>(host_[graph_.nodes[node].part]);
    };
    const std::vector<NcclNodeId> cpus = graph_.all_of(NcclNodeKind::kCpu);
    for (const NcclNodeId from : cpus) {
      for (const NcclNodeId to : cpus) {
        if (from == to || info(from).host_hash != info(to).host_hash) continue;
        join(from, {.to = to,
                    .type = PathType::kSys,
                    .kind = LinkKind::kInterNuma,
                    .gb_per_s = nccl_inter_numa_gb_per_s(info(from))});
      }
    }
  }

  void put_upward_last(NcclNodeId node) {
    std::vector<NcclLink>& links = graph_.nodes[node].links;
    const auto upward = std::ranges::find_if(links, [&](const NcclLink& link) {
      return link.to == up_[node] && link.type == PathType::kPix;
    });
    if (upward != links.end()) std::rotate(upward, upward + 1, links.end());
  }

  void note_one_sided_links() {
    for (NcclNodeId from = 0; from < graph_.nodes.size(); ++from) {
      for (const NcclLink& link : graph_.nodes[from].links) {
        const auto back = [&](const NcclLink& l) { return l.to == from && l.type == link.type; };
        if (std::ranges::any_of(graph_.nodes[link.to].links, back)) continue;
        graph_.notes.push_back(
            fmt::format("{} lists a link to {}, which lists none back: NCCL stops there with "
                        "\"Failed to find reverse path\"",
                        names_[graph_.nodes[from].part], names_[graph_.nodes[link.to].part]));
      }
    }
  }

  const HostTree& host_;
  const std::vector<std::string> names_;
  NcclGraph graph_;
  std::vector<NcclNodeId> up_;  // by node: the next one up the PCIe tree
  std::vector<bool> left_out_;  // by part
  std::map<std::string, NcclNodeId> nics_;
  NcclNodeId nvswitch_ = kNoNcclNode;
};

}  // namespace

std::vector<NcclNodeId> NcclGraph::all_of(NcclNodeKind kind) const {
  std::vector<NcclNodeId> found;
  for (NcclNodeId node = 0; node < nodes.size(); ++node) {
    if (nodes[node].kind == kind) found.push_back(node);
  }
  return found;
}

NcclGraph make_nccl_graph(const HostTree& host) { return GraphBuilder(host).build(); }

}  // namespace gxp
