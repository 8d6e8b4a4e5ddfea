// write_nccl_xml().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/tools/topology/read/nccl_fields.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/xml_text.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

// The target for an NVSwitch without a known bus id, as in a virtual machine.
constexpr std::string_view kHiddenSwitch = "fffffff:ff:ff.0";
constexpr std::string_view kNvSwitchClass = "0x068000";

class Writer {
 public:
  explicit Writer(const HostTree& host) : host_(host), links_from_(host.parts().size()) {
    for (const CrossLink& link : host.cross_links()) {
      if (link.from < links_from_.size()) links_from_[link.from].push_back(&link);
    }
  }

  std::string write() {
    xml_.open("system");
    xml_.attribute("version", host_.dialect.empty() ? "1" : host_.dialect);
    write_attributes(host_.other, "");
    for (const PartId id : host_.roots()) write_part(id);
    xml_.add_verbatim(host_.unknown_elements);
    xml_.close();
    return xml_.text();
  }

 private:
  void write_text(std::string_view name, std::string_view value) {
    if (!value.empty()) xml_.attribute(name, value);
  }

  // Writes the attributes in `other` that begin with the prefix, without the prefix.
  void write_attributes(const Attributes& other, std::string_view prefix) {
    for (const auto& [name, value] : other) {
      const std::string_view rest =
          std::string_view(name).substr(std::min(prefix.size(), name.size()));
      if (!name.starts_with(prefix) || rest.empty() || rest.find('/') != std::string_view::npos)
        continue;
      xml_.attribute(rest, value);
    }
  }

  void write_unknown(const Attributes& other, std::string_view key) {
    for (const auto& [name, value] : other) {
      if (name == key) xml_.add_verbatim(value);
    }
  }

  // Elements within a <gpu> or <nic>; those of a <pci> that it lies in have its prefix as key.
  void write_unknown(const Part& part, std::string_view prefix) {
    if (prefix.empty()) return xml_.add_verbatim(part.unknown_elements);
    write_unknown(part.other, prefix);
  }

  static bool has_prefix(const Attributes& other, std::string_view prefix) {
    return std::ranges::any_of(other,
                               [&](const auto& entry) { return entry.first.starts_with(prefix); });
  }

  void write_below(const Part& part) {
    for (const PartId below : part.below) write_part(below);
    xml_.add_verbatim(part.unknown_elements);
  }

  void write_part(PartId id) {
    const Part& part = host_[id];
    if (part.kind == PartKind::kNumaNode) return write_numa_node(part);
    if (part.kind == PartKind::kPort) return write_port(part);
    if (part.kind == PartKind::kHostBridge) return write_below(part);
    // NCCL knows NVSwitches by the links that lead to them.
    if (part.kind == PartKind::kNvSwitch && part.above == kNoPart) return;
    if (!part.bus_id.empty() || part.kind == PartKind::kPcieSwitch) return write_pci(id);
    const PartKind above = part.above == kNoPart ? PartKind::kNumaNode : host_[part.above].kind;
    const bool is_nic = part.kind == PartKind::kNic;
    if (is_nic && !is_on_pcie(host_, id)) return write_nic(part, "");
    if (is_nic || (part.kind == PartKind::kGpu && above != PartKind::kGpu)) {
      fail(ErrorKind::kConfig,
           "write NCCL XML of {}: {} has no bus id, which NCCL needs; {} does not record it",
           host_.name, names_of_parts(host_)[id], host_.source);
    }
    if (part.kind == PartKind::kGpu) write_gpu(id, "");
  }

  void write_numa_node(const Part& part) {
    xml_.open("cpu");
    write_fields(xml_, kCpuFields, info_of<NumaNodeInfo>(part));
    write_attributes(part.other, "");
    write_below(part);
    xml_.close();
  }

  void write_link(const PcieLink& link) {
    const PcieRate& rate = link.most.gt_per_s > 0 ? link.most : link.now;
    if (!link.speed_text.empty()) {
      xml_.attribute("link_speed", link.speed_text);
    } else if (rate.gt_per_s > 0) {
      xml_.attribute("link_speed", fmt::format("{:.1f} GT/s PCIe", rate.gt_per_s));
    }
    if (!link.width_text.empty()) {
      xml_.attribute("link_width", link.width_text);
    } else if (rate.lanes > 0) {
      xml_.attribute("link_width", std::to_string(rate.lanes));
    }
  }

  bool is_gpu_element(PartId id) const {
    const Part& part = host_[id];
    const auto& gpu = info_of<GpuInfo>(part);
    if (part.kind != PartKind::kGpu) return false;
    const bool says_anything =
        gpu.number || gpu.rank || gpu.compute_capability || gpu.gpu_direct || !gpu.gcn.empty();
    return says_anything || !links_from_[id].empty() || has_prefix(part.other, "gpu/");
  }

  void write_pci(PartId id) {
    const Part& part = host_[id];
    xml_.open("pci");
    xml_.attribute("busid",
                   part.bus_id.empty() ? fmt::format("ffff:ff:{:02x}.0", ++made_up_) : part.bus_id);
    write_fields(xml_, kPciFields, part.identity);
    if (part.bus_id.empty() && part.identity.class_code.empty())
      xml_.attribute("class", "0x060400");
    write_link(part.link);
    write_attributes(part.other, "");
    if (is_gpu_element(id)) write_gpu(id, "gpu/");
    const bool has_ports = std::ranges::any_of(
        part.below, [&](PartId below) { return host_[below].kind == PartKind::kPort; });
    if (has_ports || has_prefix(part.other, "nic/")) write_nic(part, "nic/");
    for (const PartId below : part.below) {
      if (host_[below].kind != PartKind::kPort) write_part(below);
    }
    write_cross_links(id, true);
    xml_.add_verbatim(part.unknown_elements);
    xml_.close();
  }

  void write_gpu(PartId id, std::string_view prefix) {
    const Part& part = host_[id];
    xml_.open("gpu");
    write_fields(xml_, kGpuFields, std::get<GpuInfo>(part.info));
    write_attributes(part.other, prefix);
    write_cross_links(id, false);
    write_unknown(part, prefix);
    xml_.close();
  }

  void write_nic(const Part& part, std::string_view prefix) {
    xml_.open("nic");
    write_attributes(part.other, prefix);
    for (const PartId below : part.below) {
      if (host_[below].kind == PartKind::kPort) write_port(host_[below]);
    }
    write_unknown(part, prefix);
    xml_.close();
  }

  void write_port(const Part& part) {
    xml_.open("net");
    write_fields(xml_, kNetFields, info_of<PortInfo>(part));
    write_attributes(part.other, "");
    xml_.add_verbatim(part.unknown_elements);
    xml_.close();
  }

  // `pcie`: those between bridges, else those of a GPU.
  void write_cross_links(PartId id, bool pcie) {
    for (const CrossLink* link : links_from_[id]) {
      if ((link->kind == CrossLinkKind::kPcie) != pcie) continue;
      const auto element = std::ranges::find(kLinkElements, link->kind, &LinkElement::kind);
      xml_.open(element->element);
      const Part* to = link->to == kNoPart ? nullptr : &host_[link->to];
      std::string target = link->target;
      std::string target_class = link->target_class;
      if (to != nullptr && to->kind == PartKind::kNvSwitch && target_class.empty())
        target_class = kNvSwitchClass;
      if (to != nullptr && target.empty()) {
        target = to->bus_id;
        if (target_class.empty()) target_class = to->identity.class_code;
      }
      if (target.empty() && target_class == kNvSwitchClass) target = kHiddenSwitch;
      if (link->kind == CrossLinkKind::kChipToChip) {
        xml_.attribute("bw", fmt::format("{}", std::round(link->gb_per_s * 1000)));
      } else {
        write_text("target", target);
      }
      if (link->kind != CrossLinkKind::kPcie) xml_.attribute("count", std::to_string(link->count));
      write_text("tclass", target_class);
      write_attributes(link->other, "");
      write_unknown(link->other, "/");
      xml_.close();
    }
  }

  const HostTree& host_;
  std::vector<std::vector<const CrossLink*>> links_from_;
  XmlWriter xml_;
  int made_up_ = 0;  // bus ids
};

}  // namespace

std::string write_nccl_xml(const HostTree& host) { return Writer(host).write(); }

}  // namespace gxp
