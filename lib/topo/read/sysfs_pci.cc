// PCIe from /sys/bus/pci/devices.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"
#include "lib/topo/read/pci_tree.h"
#include "lib/topo/read/sysfs_host.h"

namespace gxp {
namespace {

constexpr const char* kDevices = "/sys/bus/pci/devices";

std::string text_of(const SystemRoot& root, const std::string& path) {
  return root.read(path).value_or("");
}

PcieRate read_rate(const SystemRoot& root, const std::string& path, std::string_view which) {
  const long lanes = root.read_number(fmt::format("{}/{}_link_width", path, which)).value_or(0);
  return {parse_gt_per_s(text_of(root, fmt::format("{}/{}_link_speed", path, which))),
          is_link_width(double(lanes)) ? int(lanes) : 0};
}

PcieLink read_link(const SystemRoot& root, const std::string& path) {
  PcieLink link{.now = read_rate(root, path, "current"), .most = read_rate(root, path, "max")};
  if (link.most.gt_per_s > 0) link.speed_text = text_of(root, path + "/max_link_speed");
  if (link.most.lanes > 0) link.width_text = std::to_string(link.most.lanes);
  return link;
}

PciFunction read_function(const SystemRoot& root, const std::string& bus_id) {
  const std::string path = fmt::format("{}/{}", kDevices, bus_id);
  PciFunction function;
  function.part.bus_id = bus_id;
  function.part.identity = {.class_code = text_of(root, path + "/class"),
                            .vendor = text_of(root, path + "/vendor"),
                            .device = text_of(root, path + "/device"),
                            .subsystem_vendor = text_of(root, path + "/subsystem_vendor"),
                            .subsystem_device = text_of(root, path + "/subsystem_device")};
  function.part.link = read_link(root, path);
  function.driver = root.link_name(path + "/driver");
  return function;
}

// "/sys/devices/pci0000:3a/0000:3a:00.0/...": "0000:3a"; else by the first bus id.
std::string root_name(const std::vector<std::string>& ids) {
  return ids[0].substr(0, ids[0].rfind(':'));
}

// The NUMA node of a root: what Linux says of one of its functions.
class Places {
 public:
  Places(HostTree& host, const SystemRoot& root) : host_(host), root_(root) {}

  PartId node_of(const PciRoot& pci) {
    for (const PciFunction& function : pci.functions) {
      const std::string path = fmt::format("{}/{}/numa_node", kDevices, function.part.bus_id);
      const PartId node = find_numa_node(host_, root_.read_number(path).value_or(-1));
      if (node != kNoPart) return node;
    }
    return nearest_by_cpus(pci);
  }

 private:
  PartId nearest_by_cpus(const PciRoot& pci) {
    const std::vector<PartId> nodes = host_.all_of(PartKind::kNumaNode);
    if (nodes.size() == 1) return nodes[0];
    const auto map =
        root_.read(fmt::format("{}/{}/local_cpus", kDevices, pci.functions[0].part.bus_id));
    const auto local = map ? CpuSet::parse_map(*map) : std::nullopt;
    std::vector<PartId> near;
    for (const PartId id : nodes) {
      if (local && cpus_of(host_[id]).intersects(*local)) near.push_back(id);
    }
    if (near.size() != 1) {
      host_.notes.push_back(fmt::format(
          "Linux does not report to which NUMA node PCIe root {} belongs; it is shown below the "
          "lowest node that it may be of, so paths to it may be wrong",
          pci.name));
    }
    return near.empty() ? nodes[0] : near[0];
  }

  HostTree& host_;
  const SystemRoot& root_;
};

// Whether the GPU of that minor number is divided into MIG's GPU instances, gi1 and so on.
bool has_slices(const SystemRoot& root, std::string_view minor) {
  const auto names = root.list(fmt::format("/proc/driver/nvidia/capabilities/gpu{}/mig", minor));
  return std::ranges::any_of(names, [](const auto& name) { return name.starts_with("gi"); });
}

void add_model_names(HostTree& host, const SystemRoot& root) {
  for (const PartId id : host.all_of(PartKind::kGpu)) {
    const std::string path =
        fmt::format("/proc/driver/nvidia/gpus/{}/information", host[id].bus_id);
    const std::string text = root.read(path).value_or("");
    auto& gpu = std::get<GpuInfo>(host[id].info);
    gpu.model_name = value_behind(text, "Model:");
    const std::string_view uuid = value_behind(text, "GPU UUID:");
    if (uuid.find('?') == std::string_view::npos) gpu.uuid = uuid;  // which hide it from some users
    gpu.is_sliced = has_slices(root, value_behind(text, "Device Minor:"));
  }
}

std::map<std::string, PciRoot> read_roots(const SystemRoot& root) {
  std::map<std::string, PciRoot> roots;
  std::map<std::string, int> index;  // in its root
  const std::vector<std::string> network = network_functions(root);
  for (const std::string& bus_id : root.list(kDevices)) {
    const auto path = root.resolve(fmt::format("{}/{}", kDevices, bus_id));
    if (!path || !is_bus_id(bus_id)) continue;
    std::vector<std::string> ids = bus_ids_in(*path);
    if (ids.empty()) ids.push_back(bus_id);
    PciRoot& pci = roots[root_name(ids)];
    pci.name = root_name(ids);
    // A bridge may come after what lies below it.
    for (size_t i = 0; i < ids.size(); ++i) {
      if (index.contains(ids[i])) continue;
      index[ids[i]] = int(pci.functions.size());
      PciFunction function = read_function(root, ids[i]);
      function.above = i == 0 ? -1 : index[ids[i - 1]];
      function.has_network = std::ranges::find(network, ids[i]) != network.end();
      pci.functions.push_back(std::move(function));
    }
  }
  return roots;
}

}  // namespace

std::string bus_id_in(std::string_view path) {
  const std::vector<std::string> ids = bus_ids_in(path);
  return ids.empty() ? "" : ids.back();
}

void add_pci_devices(HostTree& host, const SystemRoot& root) {
  std::map<std::string, PciRoot> roots = read_roots(root);
  if (roots.empty()) host.absent.push_back("no PCIe devices in /sys: GPUs and NICs are not shown");
  Places places(host, root);
  for (auto& [name, pci] : roots) {
    pci.node = places.node_of(pci);
    add_pci_root(host, pci);
  }
  add_model_names(host, root);
}

}  // namespace gxp
