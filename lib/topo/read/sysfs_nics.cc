// Network interfaces and RDMA devices from /sys/class/net and /sys/class/infiniband.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/base/text/ascii.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"
#include "lib/topo/read/sysfs_host.h"

namespace gxp {
namespace {

constexpr const char* kInterfaces = "/sys/class/net";
constexpr const char* kRdmaDevices = "/sys/class/infiniband";

std::string folder_of(const char* all, const std::string& name) {
  return fmt::format("{}/{}", all, name);
}

// The device of an interface or RDMA device; none: it is virtual.
std::optional<std::string> device_of(const SystemRoot& root, const std::string& folder) {
  return root.resolve(folder + "/device");
}

// "100 Gb/sec (4X EDR)": 100000.
double mbit_per_s(std::string_view rate) { return leading_number<double>(rate) * 1000; }

// "4: ACTIVE": "active".
std::string state_word(std::string_view text) {
  const size_t colon = text.find(": ");
  const std::string word = lower_case(colon == text.npos ? text : text.substr(colon + 2));
  if (word == "up") return "active";
  return word == "unknown" ? "" : word;
}

// "b859:9f03:00c4:5d68": "0xb8599f0300c45d68", as NCCL writes it.
std::string guid_of(const SystemRoot& root, const std::string& folder) {
  std::string text = root.read(folder + "/node_guid").value_or("");
  std::erase(text, ':');
  return text.empty() ? "" : "0x" + text;
}

// The interface of a port: the device's own that has its number (from 0), or its only one.
std::string interface_of(const SystemRoot& root, const std::string& folder, int port) {
  const std::vector<std::string> names = root.list(folder + "/device/net");
  for (const std::string& name : names) {
    const std::string number = fmt::format("{}/device/net/{}/dev_port", folder, name);
    if (names.size() > 1 && root.read_number(number) == port - 1) return name;
  }
  return names.size() == 1 ? names[0] : "";
}

PortInfo read_rdma_port(const SystemRoot& root, const std::string& device, int port) {
  const std::string folder = folder_of(kRdmaDevices, device);
  const std::string path = fmt::format("{}/ports/{}/", folder, port);
  PortInfo info;
  info.name = device;
  info.interface = interface_of(root, folder, port);
  info.mbit_per_s = mbit_per_s(root.read(path + "rate").value_or(""));
  info.port = port;
  info.guid = guid_of(root, folder);
  info.link_layer = root.read(path + "link_layer").value_or("");
  info.state = state_word(root.read(path + "state").value_or(""));
  return info;
}

PortInfo read_interface(const SystemRoot& root, const std::string& name) {
  const std::string folder = folder_of(kInterfaces, name);
  PortInfo info;
  info.name = name;
  info.mbit_per_s = double(std::max(0L, root.read_number(folder + "/speed").value_or(0)));
  info.link_layer = root.read_number(folder + "/type") == 32 ? "InfiniBand" : "Ethernet";
  info.state = state_word(root.read(folder + "/operstate").value_or(""));
  return info;
}

// The NIC of a device; one that is not on PCIe is added below its NUMA node, or the first.
PartId nic_of(HostTree& host, const SystemRoot& root, const std::string& device) {
  const PartId function = host.find_bus(bus_id_in(device));
  if (function != kNoPart) return function;
  const PartId node = find_numa_node(host, root.read_number(device + "/numa_node").value_or(-1));
  const PartId above = node == kNoPart ? host.roots()[0] : node;
  return host.add({.kind = PartKind::kNic, .above = above, .info = NicInfo{}});
}

void add_port(HostTree& host, PartId nic, PortInfo info) {
  if (info.mbit_per_s == 0 && info.state != "down") {
    host.absent.push_back(fmt::format(
        "{} reports no speed (it is virtual, or its driver cannot): paths over it have no "
        "bandwidth",
        info.name));
  }
  host.add({.kind = PartKind::kPort, .above = nic, .info = std::move(info)});
}

}  // namespace

std::vector<std::string> network_functions(const SystemRoot& root) {
  std::vector<std::string> ids;
  for (const char* const all : {kInterfaces, kRdmaDevices}) {
    for (const std::string& name : root.list(all)) {
      const auto device = device_of(root, folder_of(all, name));
      if (device && !bus_id_in(*device).empty()) ids.push_back(bus_id_in(*device));
    }
  }
  return ids;
}

void add_network_ports(HostTree& host, const SystemRoot& root) {
  std::set<std::string> covered;  // interfaces of RDMA devices
  for (const std::string& name : root.list(kRdmaDevices)) {
    const std::string folder = folder_of(kRdmaDevices, name);
    const auto device = device_of(root, folder);
    if (!device) continue;
    const PartId nic = nic_of(host, root, *device);
    for (const std::string& port : root.list(folder + "/ports"))
      add_port(host, nic, read_rdma_port(root, name, std::atoi(port.c_str())));
    for (std::string& interface : root.list(folder + "/device/net"))
      covered.insert(std::move(interface));
  }
  for (const std::string& name : root.list(kInterfaces)) {
    const auto device = device_of(root, folder_of(kInterfaces, name));
    if (device && !covered.contains(name))
      add_port(host, nic_of(host, root, *device), read_interface(root, name));
  }
}

}  // namespace gxp
