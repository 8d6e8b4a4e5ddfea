#include "lib/tools/topology/compare/vm_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/topo/model/cpu_set.h"
#include "lib/topo/nccl/nccl_paths.h"

namespace gxp {
namespace {

std::vector<PortInfo> ports_of(const HostTree& host, PartId nic) {
  std::vector<PortInfo> ports;
  for (const PartId below : host[nic].below) {
    if (const auto* port = std::get_if<PortInfo>(&host[below].info)) ports.push_back(*port);
  }
  return ports;
}

std::string serial_of(const HostTree& host, PartId part) {
  for (const auto& [key, value] : host[part].other) {
    if (key == "serial" || key == "uuid" || key == "gpu/serial" || key == "gpu/uuid") return value;
  }
  return "";
}

std::string guids_of(const HostTree& host, PartId part) {
  std::string text;
  for (const PortInfo& port : ports_of(host, part)) {
    if (port.has_guid()) text += port.guid + " ";
  }
  return text;
}

std::string port_names_of(const HostTree& host, PartId part) {
  std::string text;
  for (const PortInfo& port : ports_of(host, part)) text += port.name + " ";
  return text;
}

struct Key {
  std::string_view why;
  std::string (*of)(const HostTree& host, PartId part);
};

// The first that all devices of a kind have, on both sides.
constexpr std::array<Key, 3> kKeys = {{{"by its serial number", serial_of},
                                       {"by the guids of its ports", guids_of},
                                       {"by the names of its ports", port_names_of}}};

constexpr std::string_view kByOrder = "by the order of bus ids, since nothing else identifies it";

std::vector<PartId> devices_of(const HostTree& host, PartKind kind) {
  std::vector<PartId> devices = host.all_of(kind);
  std::erase_if(devices, [&](PartId part) { return host[part].bus_id.empty(); });
  // Bus ids of one width in hexadecimal: their order is that of the text.
  std::ranges::stable_sort(devices, {}, [&](PartId part) {
    const std::string& bus = host[part].bus_id;
    return std::pair(bus.size(), bus);
  });
  return devices;
}

std::string model_of(const HostTree& host, PartId part) {
  const PciIdentity& identity = host[part].identity;
  return identity.vendor.empty() ? "" : identity.vendor + ":" + identity.device;
}

class Matcher {
 public:
  Matcher(const HostTree& bare, const HostTree& vm) : bare_(bare), vm_(vm) {}

  std::vector<DeviceMatch> match() {
    match_kind(PartKind::kGpu, "GPUs");
    match_kind(PartKind::kNic, "NICs");
    if (matches_.empty())
      fail(ErrorKind::kMismatch, "match {} with {}: neither has a GPU or NIC on PCIe", vm_.name,
           bare_.name);
    return std::move(matches_);
  }

 private:
  void match_kind(PartKind kind, std::string_view word) {
    const std::vector<PartId> bare = devices_of(bare_, kind);
    const std::vector<PartId> vm = devices_of(vm_, kind);
    if (bare.size() != vm.size())
      fail(ErrorKind::kMismatch,
           "match {} with {}: it has {} {}, the bare-metal host has {}; give the topology of a "
           "host with the same devices",
           vm_.name, bare_.name, vm.size(), word, bare.size());
    const auto by_model = group_by_model(bare, vm, word);
    for (const auto& [model, groups] : by_model) match_group(groups.first, groups.second, word);
  }

  using Groups = std::map<std::string, std::pair<std::vector<PartId>, std::vector<PartId>>>;

  // Groups by vendor and device if all devices have them, else one group.
  [[nodiscard]] Groups group_by_model(const std::vector<PartId>& bare,
                                      const std::vector<PartId>& vm, std::string_view word) const {
    const auto says = [](const HostTree& host) {
      return [&](PartId part) { return !model_of(host, part).empty(); };
    };
    if (!std::ranges::all_of(bare, says(bare_)) || !std::ranges::all_of(vm, says(vm_)))
      return {{"", {bare, vm}}};
    Groups groups;
    for (const PartId part : bare) groups[model_of(bare_, part)].first.push_back(part);
    for (const PartId part : vm) groups[model_of(vm_, part)].second.push_back(part);
    for (const auto& [model, both] : groups) {
      if (both.first.size() == both.second.size()) continue;
      fail(ErrorKind::kMismatch,
           "match {} with {}: it has {} {} of model {}, the bare-metal host has {}", vm_.name,
           bare_.name, both.second.size(), word, model, both.first.size());
    }
    return groups;
  }

  void match_group(const std::vector<PartId>& bare, const std::vector<PartId>& vm,
                   std::string_view word) {
    for (const Key& key : kKeys) {
      if (match_by(key, bare, vm, word)) return;
    }
    for (size_t i = 0; i < bare.size(); ++i)
      matches_.push_back(
          {bare[i], vm[i], bare.size() == 1 ? "the only one of its kind" : std::string(kByOrder)});
  }

  // False: the two have no such key in common, or each device alone has it for all.
  bool match_by(const Key& key, const std::vector<PartId>& bare, const std::vector<PartId>& vm,
                std::string_view word) {
    std::multimap<std::string, PartId> by_key;
    for (const PartId part : bare) by_key.emplace(key.of(bare_, part), part);
    size_t known = 0;
    for (const PartId part : vm) known += by_key.contains(key.of(vm_, part)) ? 1 : 0;
    if (by_key.contains("") || known == 0) return false;
    std::set<PartId> taken;
    for (const PartId part : vm) {
      const auto [first, last] = by_key.equal_range(key.of(vm_, part));
      const bool is_one = first != last && std::next(first) == last;
      if (!is_one || !taken.insert(first->second).second)
        fail(ErrorKind::kMismatch,
             "match the {} of {} with {}: {} of {}, matched {}, fits {} of the bare-metal host; "
             "correct one of the files",
             word, vm_.name, bare_.name, vm_[part].bus_id, vm_.name, key.why,
             first == last ? "no device" : "several devices");
      matches_.push_back({first->second, part, std::string(key.why)});
    }
    return true;
  }

  const HostTree& bare_;
  const HostTree& vm_;
  std::vector<DeviceMatch> matches_;
};

// Whether devices that something identifies have another order of bus ids in the VM, in which the
// matches of a kind are.
bool is_other_order(const HostTree& bare, const std::vector<DeviceMatch>& matches) {
  std::map<PartKind, std::string> last;
  for (const DeviceMatch& match : matches) {
    if (match.why == kByOrder) continue;
    std::string& before = last[bare[match.bare].kind];
    if (bare[match.bare].bus_id < before) return true;
    before = bare[match.bare].bus_id;
  }
  return false;
}

// A NIC's path is its first port's that NCCL has.
PartId end_of(const NcclPaths& paths, PartId device) {
  for (const PartId below : paths.host()[device].below) {
    if (paths.distance(below, below).type == PathType::kLoc) return below;
  }
  return device;
}

class VmBuilder {
 public:
  VmBuilder(const HostTree& bare, const HostTree& vm) : bare_(bare), vm_(vm) {
    result_.matches = Matcher(bare, vm).match();
    const bool is_guess =
        std::ranges::find(result_.matches, kByOrder, &DeviceMatch::why) != result_.matches.end();
    if (is_guess && is_other_order(bare, result_.matches))
      result_.notes.push_back(
          "the devices that a guid, name or number identifies have another order of bus ids in the "
          "VM, so those that are matched by this order may be wrong");
    for (const DeviceMatch& match : result_.matches) device_[match.bare] = match.vm;
    result_.host.name = vm.name;
    result_.host.source = "the tree of " + bare.name + " with the devices of " + vm.name;
    result_.host.dialect = bare.dialect;
  }

  VmTopology build() {
    for (const PartId root : bare_.roots()) copy(root, kNoPart);
    copy_links();
    prove();
    return std::move(result_);
  }

 private:
  // One that no device has, as clouds write it.
  [[nodiscard]] std::string next_bridge() {
    ++bridges_;
    return fmt::format("ffff:{:02x}:{:02x}.0", 0xff - bridges_ / 32, bridges_ % 32);
  }

  [[nodiscard]] bool leads_to_device(PartId id) const {
    return device_.contains(id) || std::ranges::any_of(bare_[id].below, [&](PartId below) {
             return leads_to_device(below);
           });
  }

  void copy(PartId id, PartId above) {
    if (device_.contains(id)) return copy_device(id, above);
    const PartKind kind = bare_[id].kind;
    const bool is_node = kind == PartKind::kNumaNode;
    if (!is_node && !leads_to_device(id)) return;
    Part part = bare_[id];
    part.above = above;
    part.below.clear();
    if (part.kind == PartKind::kPcieSwitch) part.bus_id = next_bridge();
    part.place = {};
    if (auto* node = std::get_if<NumaNodeInfo>(&part.info)) take_cpus(*node);
    const PartId copied = result_.host.add(std::move(part));
    of_bare_[id] = copied;
    for (const PartId below : bare_[id].below) copy(below, copied);
  }

  // The VM's, on the bare-metal host's link.
  void copy_device(PartId id, PartId above) {
    const PartId own = device_.at(id);
    Part part = vm_[own];
    part.above = above;
    part.below.clear();
    part.link = bare_[id].link;
    if (part.identity.class_code.empty()) part.identity = bare_[id].identity;
    const PartId copied = result_.host.add(std::move(part));
    of_bare_[id] = copied;
    of_vm_[own] = copied;
    for (const PartId below : vm_[own].below) {
      Part port = vm_[below];
      port.above = copied;
      port.below.clear();
      result_.host.add(std::move(port));
    }
  }

  void take_cpus(NumaNodeInfo& node) {
    node.host_hash.clear();
    CpuSet all;
    for (const PartId id : vm_.all_of(PartKind::kNumaNode)) {
      const auto& own = info_of<NumaNodeInfo>(vm_[id]);
      const auto cpus = CpuSet::parse_map(own.affinity);
      if (!cpus) continue;
      if (own.number == node.number &&
          vm_.all_of(PartKind::kNumaNode).size() == bare_.all_of(PartKind::kNumaNode).size()) {
        node.affinity = own.affinity;
        return;
      }
      for (const int cpu : cpus->cpus()) all.add(cpu);
    }
    if (!all.empty()) {
      node.affinity = all.to_map();
      result_.notes.push_back(fmt::format(
          "NUMA node {} of the bare-metal host has no counterpart in the VM: all CPUs of the VM "
          "are its affinity",
          node.number.value_or(-1)));
    } else {
      result_.notes.push_back(fmt::format(
          "{} does not say which CPUs it has: the affinity of NUMA node {} is the bare-metal "
          "host's",
          vm_.name, node.number.value_or(-1)));
    }
  }

  // Devices get the VM's links if it has any, else the bare-metal host's; bridges get the latter.
  void copy_links() {
    const bool has_own = !vm_.cross_links().empty();
    for (const CrossLink& link : bare_.cross_links()) {
      if (!has_own || !device_.contains(link.from)) copy_link(link, of_bare_);
    }
    for (const CrossLink& link : vm_.cross_links()) copy_link(link, of_vm_);
  }

  void copy_link(CrossLink link, const std::map<PartId, PartId>& copies) {
    const auto start = copies.find(link.from);
    const auto end = copies.find(link.to);
    if (start == copies.end()) return;
    link.from = start->second;
    link.to = end == copies.end() ? kNoPart : end->second;
    if (link.to != kNoPart && !link.target.empty()) link.target = result_.host[link.to].bus_id;
    link.place = {};
    result_.host.add_cross_link(std::move(link));
  }

  void prove() {
    const NcclPaths bare(bare_);
    const NcclPaths vm(result_.host);
    for (const auto& [first, own_first] : device_) {
      for (const auto& [second, own_second] : device_) {
        if (first >= second) continue;
        const PathType before = bare.distance(end_of(bare, first), end_of(bare, second)).type;
        const PathType after =
            vm.distance(end_of(vm, of_bare_.at(first)), end_of(vm, of_bare_.at(second))).type;
        if (before != after)
          fail(ErrorKind::kMismatch,
               "make a topology of {}: between {} and {} NCCL would find {}, on the bare-metal "
               "host {}; check that both files give the same devices a rank, a number (dev) and "
               "NVLinks",
               vm_.name, vm_[own_first].bus_id, vm_[own_second].bus_id, to_string(after),
               to_string(before));
        ++result_.equal_pairs;
      }
    }
  }

  const HostTree& bare_;
  const HostTree& vm_;
  std::map<PartId, PartId> device_;   // of the bare-metal host to the VM
  std::map<PartId, PartId> of_bare_;  // to the result
  std::map<PartId, PartId> of_vm_;    // devices, to the result
  VmTopology result_;
  int bridges_ = 0;
};

}  // namespace

VmTopology make_vm_topology(const HostTree& bare, const HostTree& vm) {
  return VmBuilder(bare, vm).build();
}

}  // namespace gxp
