#include "lib/topo/read/pci_tree.h"

#include <algorithm>
#include <cctype>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

constexpr std::string_view kNvidia = "0x10de";
constexpr std::string_view kAmd = "0x1002";

// The kind by class and vendor; kPcieDevice also for functions that become no part.
PartKind kind_of_function(const PciFunction& function) {
  const PciIdentity& identity = function.part.identity;
  const std::string_view type = identity.class_code;
  const bool nvidia = identity.vendor == kNvidia;
  if (is_bridge(identity)) return PartKind::kPcieSwitch;
  if (nvidia && type.starts_with("0x0680")) return PartKind::kNvSwitch;
  // A display of 0x0300 that is not NVIDIA's is a server's own, unless it has AMD's driver.
  const bool computes = type.starts_with("0x0302") || type.starts_with("0x0380") ||
                        type.starts_with("0x1200") || function.driver == "amdgpu";
  if (nvidia && type.starts_with("0x03")) return PartKind::kGpu;
  if (identity.vendor == kAmd && computes) return PartKind::kGpu;
  const bool network = type.starts_with("0x02") || type.starts_with("0x0c06");
  return network || function.has_network ? PartKind::kNic : PartKind::kPcieDevice;
}

bool is_kept(const PciFunction& function) {
  if (kind_of_function(function) != PartKind::kPcieDevice) return true;
  const std::string_view type = function.part.identity.class_code;
  // Storage, other makers' GPUs, processors, accelerators. Not a server's own display, which
  // would be a GPU in NCCL's XML.
  const bool is_display = type.starts_with("0x0300");
  return type.starts_with("0x01") || (type.starts_with("0x03") && !is_display) ||
         type.starts_with("0x0b") || type.starts_with("0x12");
}

// Whether the other end of a link gives a lower value; 0: an end gives none.
template <class Number>
bool says_less(Number other, Number own) {
  return other > 0 && (own == 0 || other < own);
}

PcieLink link_between(const PcieLink& own, const PcieLink& port) {
  PcieLink link = own;
  if (says_less(port.most.gt_per_s, own.most.gt_per_s)) {
    link.most.gt_per_s = port.most.gt_per_s;
    link.speed_text = port.speed_text;
  }
  if (says_less(port.most.lanes, own.most.lanes)) {
    link.most.lanes = port.most.lanes;
    link.width_text = port.width_text;
  }
  return link;
}

Part part_of(const PciRoot& root, const PciFunction& function, PartId above) {
  Part part = function.part;
  part.kind = kind_of_function(function);
  part.above = above;
  if (part.kind == PartKind::kGpu && part.info.index() == 0) part.info = GpuInfo{};
  if (part.kind == PartKind::kNic && part.info.index() == 0) part.info = NicInfo{};
  if (function.above >= 0)
    part.link = link_between(part.link, root.functions[size_t(function.above)].part.link);
  return part;
}

}  // namespace

double parse_gt_per_s(std::string_view text) {
  size_t length = 0;
  const auto speed = leading_number<double>(text, &length);
  const bool known = length > 0 && text.substr(length).starts_with(" GT/s");
  return known && speed >= 1 && speed <= 1024 ? speed : 0;
}

bool is_bus_id(std::string_view text) {
  const size_t domain = text.find(':');
  if (domain == text.npos || domain < 4 || domain > 8 || text.size() != domain + 8) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char expected = i == domain || i == domain + 3 ? ':' : i == domain + 6 ? '.' : 'x';
    const bool is_hex = std::isxdigit(static_cast<unsigned char>(text[i])) != 0;
    if (expected == 'x' ? !is_hex : text[i] != expected) return false;
  }
  return true;
}

std::vector<std::string> bus_ids_in(std::string_view path) {
  std::vector<std::string> ids;
  for (const std::string_view name : split(path, '/')) {
    if (is_bus_id(name)) ids.emplace_back(name);
  }
  return ids;
}

bool is_bridge(const PciIdentity& identity) { return identity.class_code.starts_with("0x0604"); }

std::vector<PartId> add_pci_root(HostTree& host, const PciRoot& root) {
  const size_t count = root.functions.size();
  std::vector<bool> kept(count);
  std::vector<int> above(count, -1);
  for (size_t i = count; i-- > 0;) {
    const PciFunction& function = root.functions[i];
    if (!kept[i] && (is_bridge(function.part.identity) || !is_kept(function))) continue;
    kept[i] = true;
    if (function.above < 0) continue;
    above[i] = root.functions[size_t(function.above)].above;
    if (above[i] >= 0) kept[size_t(above[i])] = true;
  }
  std::vector<PartId> parts(count, kNoPart);
  if (std::ranges::find(kept, true) == kept.end()) return parts;
  const PartId bridge =
      host.add({.kind = PartKind::kHostBridge, .above = root.node, .name = "PCIe " + root.name});
  for (size_t i = 0; i < count; ++i) {
    if (!kept[i]) continue;
    const PartId parent = above[i] < 0 ? bridge : parts[size_t(above[i])];
    parts[i] = host.add(part_of(root, root.functions[i], parent));
  }
  return parts;
}

}  // namespace gxp
