#include "lib/tools/topology/read/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/tools/topology/read/nccl_fields.h"
#include "lib/tools/topology/read/xml_text.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/pci_tree.h"

namespace gxp {
namespace {

constexpr size_t kNcclTextShown = 40;  // of a name or value in notes

bool starts_class(const Part& part, std::string_view prefix) {
  return part.identity.class_code.starts_with(prefix);
}

PartKind kind_of(const pugi::xml_node& pci, const Part& part) {
  if (pci.child("gpu")) return PartKind::kGpu;
  if (pci.child("nic")) return PartKind::kNic;
  if (pci.child("pci")) return PartKind::kPcieSwitch;
  if (starts_class(part, "0x03")) return PartKind::kGpu;
  if (starts_class(part, "0x02")) return PartKind::kNic;
  if (starts_class(part, "0x0604")) return PartKind::kPcieSwitch;
  return starts_class(part, "0x068000") ? PartKind::kNvSwitch : PartKind::kPcieDevice;
}

class NcclReader {
 public:
  NcclReader(std::string_view text, const std::string& name) : xml_(text, name) {
    host_.name = name;
  }

  HostTree read() {
    const pugi::xml_node system = xml_.root("system");
    host_.dialect = system.attribute("version").value();
    if (host_.dialect != "1" && host_.dialect != "2") {
      xml_.fail_at(system,
                   fmt::format("<system version=\"{}\">: 1, NCCL's, and 2, RCCL's, are known",
                               host_.dialect.substr(0, kNcclTextShown)));
    }
    host_.source = fmt::format("{} topology XML, version {}",
                               host_.dialect == "1" ? "NCCL" : "RCCL", host_.dialect);
    for (const pugi::xml_attribute attribute : xml_.attributes(system)) {
      if (attribute != system.attribute("version")) keep(system, attribute, "", host_.other);
    }
    for (const pugi::xml_node child : system.children()) {
      if (std::string_view(child.name()) == "cpu") {
        read_cpu(child);
      } else {
        keep(child, host_.unknown_elements);
      }
    }
    find_targets();
    for (const auto& [what, seen] : unknown_)
      host_.notes.push_back(
          fmt::format("{}: {} is unknown; kept, but not used{}", seen.first, what,
                      seen.times > 1 ? fmt::format(" ({} times)", seen.times) : ""));
    return std::move(host_);
  }

 private:
  struct Seen {
    std::string first;
    int times = 0;
  };

  void count_unknown(const pugi::xml_node& node, const std::string& what) {
    const auto [entry, is_new] = unknown_.try_emplace(what);
    if (is_new) entry->second.first = xml_.at(node);
    ++entry->second.times;
  }

  // Keeps an attribute without a field.
  void keep(const pugi::xml_node& node, const pugi::xml_attribute& attribute,
            std::string_view prefix, Attributes& other) {
    other.emplace_back(fmt::format("{}{}", prefix, attribute.name()), attribute.value());
    if (std::ranges::find(kKeptAttributes, attribute.name()) != kKeptAttributes.end()) return;
    if (*attribute.value() == 0) return;  // "": it says nothing
    count_unknown(node, fmt::format("attribute {} of <{}>",
                                    std::string_view(attribute.name()).substr(0, kNcclTextShown),
                                    node.name()));
  }

  void keep(const pugi::xml_node& node, std::string& elements) {
    if (node.type() != pugi::node_element && node.type() != pugi::node_pcdata &&
        node.type() != pugi::node_cdata)
      return;
    std::ostringstream text;
    node.print(text, "", pugi::format_raw);
    elements += trimmed(text.str());
    elements += '\n';
    const std::string_view name = std::string_view(node.name()).substr(0, kNcclTextShown);
    count_unknown(node.type() == pugi::node_element ? node : node.parent(),
                  node.type() == pugi::node_element
                      ? fmt::format("<{}> in <{}>", name, node.parent().name())
                      : fmt::format("text in <{}>", node.parent().name()));
  }

  // Sets the field of that attribute; what no field takes is kept in `other`.
  template <class Info, size_t kFields>
  void read_field(const pugi::xml_node& node, const pugi::xml_attribute& attribute,
                  const std::array<XmlField<Info>, kFields>& fields, Info& info,
                  std::string_view prefix, Attributes& other) {
    const auto field =
        std::ranges::find(fields, std::string_view(attribute.name()), &XmlField<Info>::attribute);
    if (field == fields.end()) return keep(node, attribute, prefix, other);
    if (!set_field(xml_, node, attribute, *field, info)) keep_value(node, attribute, prefix, other);
  }

  template <class Info, size_t kFields>
  void read_fields(const pugi::xml_node& node, const std::array<XmlField<Info>, kFields>& fields,
                   Info& info, std::string_view prefix, Attributes& other) {
    for (const pugi::xml_attribute attribute : xml_.attributes(node))
      read_field(node, attribute, fields, info, prefix, other);
  }

  // Keeps an attribute whose field cannot hold it: it is empty, repeated, or says "unknown".
  void keep_value(const pugi::xml_node& node, const pugi::xml_attribute& attribute,
                  std::string_view prefix, Attributes& other) {
    other.emplace_back(fmt::format("{}{}", prefix, attribute.name()), attribute.value());
    if (*attribute.value() == 0) return;
    host_.notes.push_back(fmt::format(
        "{}: <{} {}=\"{}\">: {}", xml_.at(node), node.name(), attribute.name(),
        std::string_view(attribute.value()).substr(0, kNcclTextShown),
        node.attribute(attribute.name()) == attribute ? "taken as unknown"
                                                      : "occurs twice; the first counts"));
  }

  void read_cpu(const pugi::xml_node& cpu) {
    Part part{.kind = PartKind::kNumaNode, .place = xml_.place_of(cpu)};
    NumaNodeInfo info;
    read_fields(cpu, kCpuFields, info, "", part.other);
    part.info = std::move(info);
    const PartId id = host_.add(std::move(part));
    for (const pugi::xml_node child : cpu.children()) {
      const std::string_view name = child.name();
      if (name == "pci") {
        read_pci(child, id, 1);
      } else if (name == "nic") {
        read_nic(child, add_part(child, PartKind::kNic, id, NicInfo{}));
      } else {
        keep(child, host_[id].unknown_elements);
      }
    }
  }

  template <class Info>
  PartId add_part(const pugi::xml_node& node, PartKind kind, PartId above, Info info) {
    return host_.add(
        {.kind = kind, .above = above, .info = std::move(info), .place = xml_.place_of(node)});
  }

  bool read_link_attribute(const pugi::xml_node& pci, const pugi::xml_attribute& attribute,
                           Part& part) {
    const std::string_view name = attribute.name();
    const std::string_view text = attribute.value();
    if (text.empty()) return false;
    if (name == "busid" && part.bus_id.empty()) {
      part.bus_id = text;
    } else if (name == "link_speed" && part.link.speed_text.empty()) {
      part.link.speed_text = text;
      part.link.now.gt_per_s = parse_gt_per_s(text);
    } else if (name == "link_width" && part.link.width_text.empty()) {
      part.link.width_text = text;
      const double lanes = xml_.number(pci, attribute, {0, INT32_MAX});
      part.link.now.lanes = is_link_width(lanes) ? int(lanes) : 0;
    } else {
      return false;
    }
    return true;
  }

  void read_pci(const pugi::xml_node& pci, PartId above, int depth) {
    if (depth > kMaxPciDepth) {
      xml_.fail_at(
          pci, fmt::format("<pci> lies more than {} deep; NCCL writes no such file", kMaxPciDepth));
    }
    Part part{.above = above, .place = xml_.place_of(pci)};
    for (const pugi::xml_attribute attribute : xml_.attributes(pci)) {
      if (read_link_attribute(pci, attribute, part)) continue;
      const std::string_view name = attribute.name();
      if (name == "busid" || name == "link_speed" || name == "link_width") {
        keep_value(pci, attribute, "", part.other);
      } else {
        read_field(pci, attribute, kPciFields, part.identity, "", part.other);
      }
    }
    if (part.bus_id.empty()) xml_.fail_at(pci, "<pci> has no busid; every device needs one");
    part.kind = kind_of(pci, part);
    if (part.kind == PartKind::kGpu) part.info = GpuInfo{};
    if (part.kind == PartKind::kNic) part.info = NicInfo{};
    const PartId id = host_.add(std::move(part));
    note_same_bus(pci, id);
    read_pci_children(pci, id, depth);
  }

  // Bus ids are those of a host, and a file may be of several.
  using BusKey = std::pair<std::string, std::string>;
  [[nodiscard]] BusKey bus_key(PartId id, const std::string& bus_id) const {
    return {std::string(host_hash_of(host_, id)), lower_case(bus_id)};
  }

  void note_same_bus(const pugi::xml_node& pci, PartId id) {
    const auto [first, is_new] = by_bus_.try_emplace(bus_key(id, host_[id].bus_id), id);
    if (is_new) return;
    host_.notes.push_back(fmt::format("{}: <pci busid=\"{}\"> occurs twice, first in line {}",
                                      xml_.at(pci), host_[id].bus_id.substr(0, kNcclTextShown),
                                      host_[first->second].place.line));
  }

  void read_pci_children(const pugi::xml_node& pci, PartId id, int depth) {
    const PartKind kind = host_[id].kind;
    bool is_taken = false;  // the <gpu> or <nic> that the <pci> itself is
    for (const pugi::xml_node child : pci.children()) {
      const std::string_view name = child.name();
      const bool is_self = !is_taken && ((name == "gpu" && kind == PartKind::kGpu) ||
                                         (name == "nic" && kind == PartKind::kNic));
      is_taken = is_taken || is_self;
      if (name == "pci") {
        read_pci(child, id, depth + 1);
      } else if (name == "gpu") {
        read_gpu(child, is_self ? id : add_part(child, PartKind::kGpu, id, GpuInfo{}));
      } else if (name == "nic") {
        read_nic(child, is_self ? id : add_part(child, PartKind::kNic, id, NicInfo{}));
      } else if (name == "pcilink") {
        read_cross_link(child, kLinkElements[3], id);
      } else {
        keep(child, host_[id].unknown_elements);
      }
    }
  }

  // The prefix of attributes in the <gpu> or <nic> of a <pci>.
  [[nodiscard]] std::string_view prefix_of(PartId id) const {
    if (host_[id].bus_id.empty()) return "";
    return host_[id].kind == PartKind::kGpu ? "gpu/" : "nic/";
  }

  // Keeps the other elements in a <gpu> or <nic>, and that an empty one was there.
  void keep_within(const pugi::xml_node& node, std::string elements, PartId id) {
    Part& part = host_[id];
    if (part.bus_id.empty()) {
      part.unknown_elements += elements;
    } else if (!elements.empty() || (!node.first_attribute() && !node.first_child())) {
      part.other.emplace_back(prefix_of(id), std::move(elements));
    }
  }

  void read_gpu(const pugi::xml_node& gpu, PartId id) {
    GpuInfo info;
    read_fields(gpu, kGpuFields, info, prefix_of(id), host_[id].other);
    host_[id].info = std::move(info);
    std::string unknown;
    for (const pugi::xml_node child : gpu.children()) {
      const auto element =
          std::ranges::find(kLinkElements, std::string_view(child.name()), &LinkElement::element);
      if (element != kLinkElements.end() && element->kind != CrossLinkKind::kPcie) {
        read_cross_link(child, *element, id);
      } else {
        keep(child, unknown);
      }
    }
    keep_within(gpu, std::move(unknown), id);
  }

  void read_nic(const pugi::xml_node& nic, PartId id) {
    for (const pugi::xml_attribute attribute : xml_.attributes(nic))
      keep(nic, attribute, prefix_of(id), host_[id].other);
    std::string unknown;
    for (const pugi::xml_node child : nic.children()) {
      if (std::string_view(child.name()) == "net") {
        read_net(child, id);
      } else {
        keep(child, unknown);
      }
    }
    keep_within(nic, std::move(unknown), id);
  }

  void read_net(const pugi::xml_node& net, PartId nic) {
    Part port{.kind = PartKind::kPort, .above = nic, .place = xml_.place_of(net)};
    PortInfo info;
    read_fields(net, kNetFields, info, "", port.other);
    port.info = std::move(info);
    for (const pugi::xml_node child : net.children()) keep(child, port.unknown_elements);
    host_.add(std::move(port));
  }

  bool read_cross_link_attribute(const pugi::xml_node& node, const pugi::xml_attribute& attribute,
                                 CrossLink& link) {
    const std::string_view name = attribute.name();
    if (*attribute.value() == 0) return false;
    if (name == "target") {
      link.target = attribute.value();
    } else if (name == "tclass") {
      link.target_class = attribute.value();
    } else if (name == "count") {
      link.count = int(xml_.number(node, attribute, {1, 1024}));
    } else if (name == "bw" && link.kind == CrossLinkKind::kChipToChip) {
      link.gb_per_s = xml_.number(node, attribute, {1, 1e9}) / 1000;
    } else {
      return false;
    }
    return true;
  }

  void read_cross_link(const pugi::xml_node& node, const LinkElement& element, PartId from) {
    CrossLink link{.kind = element.kind, .from = from, .place = xml_.place_of(node)};
    for (const pugi::xml_attribute attribute : xml_.attributes(node)) {
      if (!read_cross_link_attribute(node, attribute, link)) keep(node, attribute, "", link.other);
    }
    if (link.kind == CrossLinkKind::kChipToChip) {
      if (link.gb_per_s == 0) xml_.fail_at(node, "<c2c> has no bw; it must say MB/s");
      link.to = host_.find_above(from, PartKind::kNumaNode);
    }
    std::string unknown;
    for (const pugi::xml_node child : node.children()) keep(child, unknown);
    if (!unknown.empty()) link.other.emplace_back("/", std::move(unknown));
    host_.add_cross_link(std::move(link));
  }

  void find_targets() {
    for (CrossLink& link : host_.cross_links()) {
      const auto found = by_bus_.find(bus_key(link.from, link.target));
      if (found != by_bus_.end()) link.to = found->second;
    }
  }

  XmlText xml_;
  HostTree host_;
  std::map<std::string, Seen> unknown_;
  std::map<BusKey, PartId> by_bus_;
};

}  // namespace

HostTree read_nccl_xml(std::string_view text, const std::string& name) {
  return NcclReader(text, name).read();
}

}  // namespace gxp
