#include "lib/topo/model/host_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

struct PartKindName {
  std::string_view name;
  std::string_view stem;  // of the names of parts; "": they are named by their bus ids
};
constexpr std::array<PartKindName, 8> kKindNames = {{{"NUMA node", "NUMA"},
                                                     {"host bridge", ""},
                                                     {"PCIe switch", ""},
                                                     {"GPU", "GPU"},
                                                     {"NIC", ""},
                                                     {"port", "NIC"},
                                                     {"NVSwitch", "NVSwitch"},
                                                     {"PCIe device", ""}}};
constexpr std::array<std::string_view, 4> kCrossLinkNames = {"NVLink", "xGMI", "C2C", "PCIe link"};

std::optional<int> number_of(const Part& part) {
  if (part.kind == PartKind::kGpu) return info_of<GpuInfo>(part).number;
  if (part.kind == PartKind::kNumaNode) return info_of<NumaNodeInfo>(part).number;
  return info_of<PortInfo>(part).number;
}

std::string name_by_place(const Part& part, int number) {
  const auto& [kind, stem] = kKindNames[size_t(part.kind)];
  if (!stem.empty()) return fmt::format("{}{}", stem, number);
  if (!part.bus_id.empty()) return fmt::format("{} {}", kind, part.bus_id);
  return fmt::format("{} {}", kind, number);
}

// The port of that number, or the n-th NIC where no port is known, for "NICn".
PartId find_numbered_nic(const HostTree& host, std::string_view name) {
  if (!name.starts_with("nic")) return kNoPart;
  std::vector<PartId> nics = host.all_of(PartKind::kPort);
  if (nics.empty()) nics = host.all_of(PartKind::kNic);
  const std::vector<int> numbers = numbers_of(host, nics);
  const auto found = std::ranges::find(numbers, whole_number<int>(name.substr(3)).value_or(-1));
  return found == numbers.end() ? kNoPart : nics[size_t(found - numbers.begin())];
}

}  // namespace

std::string_view to_string(PartKind kind) { return kKindNames[size_t(kind)].name; }
std::string_view to_string(CrossLinkKind kind) { return kCrossLinkNames[size_t(kind)]; }

PartId HostTree::add(Part part) {
  if (parts_.size() >= kMaxParts)
    fail(ErrorKind::kConfig, "describe host {}: more than {} parts", name, kMaxParts);
  int depth = 1;
  for (PartId id = part.above; id != kNoPart; id = parts_[id].above) ++depth;
  if (depth > kMaxDepth)
    fail(ErrorKind::kConfig, "describe host {}: parts lie more than {} deep", name, kMaxDepth);
  const auto id = PartId(parts_.size());
  (part.above == kNoPart ? roots_ : parts_[part.above].below).push_back(id);
  part.bus_id = lower_case(part.bus_id);
  parts_.push_back(std::move(part));
  return id;
}

void HostTree::add_cross_link(CrossLink link) {
  if (cross_links_.size() >= kMaxCrossLinks)
    fail(ErrorKind::kConfig, "describe host {}: more than {} links beside its tree", name,
         kMaxCrossLinks);
  cross_links_.push_back(std::move(link));
}

std::vector<PartId> HostTree::all_of(PartKind kind) const {
  std::vector<PartId> found;
  std::vector<PartId> ahead(roots_.rbegin(), roots_.rend());
  while (!ahead.empty()) {
    const PartId id = ahead.back();
    ahead.pop_back();
    if (parts_[id].kind == kind) found.push_back(id);
    ahead.insert(ahead.end(), parts_[id].below.rbegin(), parts_[id].below.rend());
  }
  return found;
}

PartId HostTree::find_above(PartId id, PartKind kind) const {
  while (id != kNoPart && parts_[id].kind != kind) id = parts_[id].above;
  return id;
}

PartId HostTree::find_bus(std::string_view bus_id) const {
  const std::string wanted = lower_case(bus_id);
  const auto found = std::ranges::find(parts_, wanted, &Part::bus_id);
  return wanted.empty() || found == parts_.end() ? kNoPart : PartId(found - parts_.begin());
}

bool is_on_pcie(const HostTree& host, PartId device) {
  if (!host[device].bus_id.empty()) return true;
  const PartId above = host[device].above;
  return above != kNoPart &&
         (host[above].kind == PartKind::kHostBridge || host[above].kind == PartKind::kPcieSwitch);
}

std::string_view host_hash_of(const HostTree& host, PartId part) {
  const PartId node = host.find_above(part, PartKind::kNumaNode);
  return node == kNoPart ? std::string_view() : info_of<NumaNodeInfo>(host[node]).host_hash;
}

size_t count_hosts(const HostTree& host) {
  std::set<std::string_view> hashes;
  for (const PartId node : host.all_of(PartKind::kNumaNode))
    hashes.insert(host_hash_of(host, node));
  if (hashes.size() > 1) hashes.erase("");  // of nodes of which the file does not say it
  return hashes.size();
}

bool leads_to_nvswitch(const HostTree& host, const CrossLink& link) {
  return link.target_class.starts_with(kNvSwitchClass) ||
         (link.to != kNoPart && host[link.to].kind == PartKind::kNvSwitch);
}

std::vector<int> numbers_of(const HostTree& host, const std::vector<PartId>& parts) {
  std::vector<int> numbers;
  for (const PartId part : parts) numbers.push_back(number_of(host[part]).value_or(-1));
  const std::set<int> distinct(numbers.begin(), numbers.end());
  if (distinct.size() == parts.size() && (distinct.empty() || *distinct.begin() >= 0))
    return numbers;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = int(i);
  return numbers;
}

void sort_by_number(const HostTree& host, std::vector<PartId>& parts) {
  const std::vector<int> numbers = numbers_of(host, parts);
  std::vector<std::pair<int, PartId>> numbered;
  for (size_t i = 0; i < parts.size(); ++i) numbered.emplace_back(numbers[i], parts[i]);
  std::ranges::stable_sort(numbered, {}, &std::pair<int, PartId>::first);
  std::ranges::transform(numbered, parts.begin(), &std::pair<int, PartId>::second);
}

std::string given_name(const Part& part) {
  const std::string& port = info_of<PortInfo>(part).name;
  return port.empty() ? part.name : port;
}

std::vector<std::string> names_of_parts(const HostTree& host) {
  std::vector<std::string> names(host.parts().size());
  std::map<std::string, int> taken;  // and how often
  for (size_t kind = 0; kind < kKindNames.size(); ++kind) {
    const std::vector<PartId> parts = host.all_of(PartKind(kind));
    const std::vector<int> numbers = numbers_of(host, parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = host[parts[i]];
      std::string name = given_name(part);
      if (name.empty()) name = name_by_place(part, numbers[i]);
      const std::string stem = name;
      while (!taken.try_emplace(name, 0).second) name = fmt::format("{}.{}", stem, ++taken[stem]);
      names[parts[i]] = name;
    }
  }
  return names;
}

PartId find_part(const HostTree& host, std::string_view name) {
  const std::string wanted = lower_case(name);
  const std::vector<std::string> names = names_of_parts(host);
  for (PartId id = 0; id < names.size(); ++id) {
    const bool is_interface = lower_case(info_of<PortInfo>(host[id]).interface) == wanted;
    if (lower_case(names[id]) == wanted || (is_interface && !wanted.empty())) return id;
  }
  const PartId by_bus = host.find_bus(wanted);
  return by_bus == kNoPart ? find_numbered_nic(host, wanted) : by_bus;
}

}  // namespace gxp
