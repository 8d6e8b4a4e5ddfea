// PCIe functions of hwloc's XML, and the interfaces, RDMA devices and GPUs on them.
#include <fmt/format.h>

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/tools/topology/read/hwloc_objects.h"
#include "lib/tools/topology/read/hwloc_xml.h"

namespace gxp {
namespace {

// osdev_type: numbers in versions 1 and 2, bits in version 3.
constexpr int kNetworkV2 = 2, kRdmaV2 = 3;
constexpr int kNetworkV3 = 1 << 4, kRdmaV3 = 1 << 5;

int device_type(const pugi::xml_node& device) { return device.attribute("osdev_type").as_int(-1); }

std::string to_hexadecimal(std::string_view digits) {
  return digits == "0000" ? "" : fmt::format("0x{}", digits);
}

// "0604 [8086:3408] [0000:0000] 13 00": class, vendor and device, those of the subsystem, revision,
// and in version 3 the programming interface.
PciIdentity parse_identity(std::string_view text) {
  constexpr size_t kWithoutInterface = sizeof "0604 [8086:3408] [0000:0000]" - 1;
  if (text.size() < kWithoutInterface || text[5] != '[' || text[17] != '[') return {};
  const bool has_interface = text.size() == kWithoutInterface + 6;
  return {.class_code = fmt::format("0x{}{}", text.substr(0, 4),
                                    has_interface ? text.substr(text.size() - 2) : "00"),
          .vendor = to_hexadecimal(text.substr(6, 4)),
          .device = to_hexadecimal(text.substr(11, 4)),
          .subsystem_vendor = to_hexadecimal(text.substr(18, 4)),
          .subsystem_device = to_hexadecimal(text.substr(23, 4))};
}

// The number behind "nvml", "cuda" or "rsmi".
std::optional<int> number_behind(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_small_number(name.substr(prefix.size()));
}

// A server's own display does not; a GPU with the class of a display, such as AMD's MI25, does.
bool runs_programs(const pugi::xml_node& device) {
  const std::string_view name = device.attribute("name").value();
  return name.starts_with("opencl") || name.starts_with("rsmi");
}

class HwlocDevices {
 public:
  explicit HwlocDevices(HwlocHost& host) : host_(host) {}

  // `object` is a child of an object with CPUs, of which `node` is the nearest.
  void add(const pugi::xml_node& object, PartId node) {
    root_ = {.name = {}, .node = node};
    objects_.clear();
    devices_.clear();
    if (type_of(object) == "OSDev") {
      if (!is_network(object) && !is_rdma(object)) return;
      const PartId nic = host_.tree.add({.kind = PartKind::kNic, .above = node, .info = NicInfo{}});
      return add_ports(nic, {object});
    }
    collect(object, -1, 1);
    if (root_.functions.empty()) return;
    const std::string& first = root_.functions[0].part.bus_id;
    root_.name = first.substr(0, first.rfind(':'));
    const std::vector<PartId> parts = add_pci_root(host_.tree, root_);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] == kNoPart) continue;
      name_index(objects_[i], parts[i]);
      describe(parts[i], devices_[i]);
    }
  }

  // When all are added: speeds that no link has, a note each.
  void note_odd_speeds() {
    for (const auto& [gb_per_s, functions] : odd_speeds_) {
      const std::string others =
          functions.size() == 1 ? "" : fmt::format(", which {} functions have", functions.size());
      host_.tree.notes.push_back(fmt::format("{}: no PCIe link has {} GB/s{}; unknown",
                                             host_.xml.at(functions[0]), gb_per_s, others));
    }
  }

 private:
  [[nodiscard]] bool is_network(const pugi::xml_node& device) const {
    const int type = device_type(device);
    return host_.version < 3 ? type == kNetworkV2 : (type & (kNetworkV3 | kRdmaV3)) == kNetworkV3;
  }

  [[nodiscard]] bool is_rdma(const pugi::xml_node& device) const {
    const int type = device_type(device);
    return host_.version < 3 ? type == kRdmaV2 : type >= 0 && (type & kRdmaV3) != 0;
  }

  void name_index(const pugi::xml_node& object, PartId part) {
    const std::string_view index = object.attribute("gp_index").value();
    if (!index.empty()) host_.by_index.emplace(fmt::format("{}:{}", type_of(object), index), part);
  }

  void collect(const pugi::xml_node& object, int above, int depth) {
    if (depth > kMaxHwlocDepth)
      host_.xml.fail_at(object, fmt::format("bridges lie more than {} deep", kMaxHwlocDepth));
    // A host bridge is no PCIe function of its own.
    const bool is_function = object.attribute("pci_busid");
    if (is_function) return add_function(object, above, depth);
    for (const pugi::xml_node below : object.children("object")) collect(below, above, depth + 1);
  }

  void add_function(const pugi::xml_node& object, int above, int depth) {
    const int index = int(root_.functions.size());
    PciFunction function = function_of(object);
    function.above = above;
    XmlNodes devices;
    for (const pugi::xml_node below : object.children("object")) {
      if (type_of(below) == "OSDev") devices.push_back(below);
    }
    function.has_network = std::ranges::any_of(
        devices, [&](const auto& device) { return is_network(device) || is_rdma(device); });
    if (std::ranges::any_of(devices, runs_programs)) function.driver = "amdgpu";
    root_.functions.push_back(std::move(function));
    objects_.push_back(object);
    devices_.push_back(std::move(devices));
    for (const pugi::xml_node below : object.children("object")) {
      if (type_of(below) != "OSDev") collect(below, index, depth + 1);
    }
  }

  PciFunction function_of(const pugi::xml_node& object) {
    PciFunction function;
    Part& part = function.part;
    part.place = host_.xml.place_of(object);
    part.bus_id = object.attribute("pci_busid").value();
    part.identity = parse_identity(object.attribute("pci_type").value());
    if (!is_bus_id(part.bus_id)) {
      host_.xml.fail_at(object, fmt::format("<object pci_busid=\"{}\">: must be as 0000:3b:00.0",
                                            part.bus_id.substr(0, 40)));
    }
    if (part.identity.class_code.empty()) {
      host_.xml.fail_at(
          object,
          fmt::format("<object pci_type=\"{}\">: must be as 0302 [10de:2330] [10de:16c1]",
                      std::string_view(object.attribute("pci_type").value()).substr(0, 40)));
    }
    const pugi::xml_attribute speed = object.attribute("pci_link_speed");
    const double gb_per_s = speed ? host_.xml.number(object, speed, {0, 1e4}) : 0;
    part.link.now = pcie_rate_of(gb_per_s);
    if (gb_per_s > 0 && part.link.now.lanes == 0) odd_speeds_[gb_per_s].push_back(object);
    return function;
  }

  void describe(PartId part, const XmlNodes& devices) {
    for (const pugi::xml_node& device : devices) {
      name_index(device, part);
      if (auto* const gpu = std::get_if<GpuInfo>(&host_.tree[part].info))
        describe_gpu(*gpu, device);
    }
    if (host_.tree[part].kind == PartKind::kNic) add_ports(part, devices);
  }

  // NVML's number is the driver's; CUDA's may be in another order.
  void describe_gpu(GpuInfo& gpu, const pugi::xml_node& device) {
    const std::string_view name = device.attribute("name").value();
    for (const char* const prefix : {"nvml", "rsmi"}) {
      if (const auto number = number_behind(prefix, name)) gpu.number = number;
    }
    if (gpu.model_name.empty()) gpu.model_name = info_of(device, "GPUModel");
    // Version 2 leaves the unit out: KiB.
    std::string memory = info_of(device, "CUDAGlobalMemorySize");
    if (!memory.empty() && !memory.ends_with('B')) memory += "KiB";
    if (const auto bytes = parse_bytes(memory)) gpu.memory_bytes = *bytes;
  }

  void add_ports(PartId nic, const XmlNodes& devices) {
    XmlNodes rdma, interfaces;
    for (const pugi::xml_node& device : devices) {
      if (is_rdma(device)) rdma.push_back(device);
      if (is_network(device)) interfaces.push_back(device);
    }
    const std::string only = interfaces.size() == 1 ? interfaces[0].attribute("name").value() : "";
    for (const pugi::xml_node& device : rdma) add_rdma_ports(nic, device, only);
    if (!rdma.empty()) return;
    for (const pugi::xml_node& device : interfaces) {
      host_.tree.add({.kind = PartKind::kPort,
                      .above = nic,
                      .info = PortInfo{.name = device.attribute("name").value()},
                      .place = host_.xml.place_of(device)});
    }
  }

  void add_rdma_ports(PartId nic, const pugi::xml_node& device, const std::string& interface) {
    constexpr int kMaxPorts = 256;  // a port's number has eight bits
    PortInfo info{.name = device.attribute("name").value(), .interface = interface};
    info.guid = info_of(device, "NodeGUID");
    std::erase(info.guid, ':');
    if (!info.guid.empty()) info.guid.insert(0, "0x");
    std::vector<PortInfo> ports;
    for (int number = 1; number < kMaxPorts; ++number) {
      const std::string state = info_of(device, fmt::format("Port{}State", number));
      if (state.empty()) continue;
      info.port = number;
      info.state = state == "4" ? "active" : "down";  // IBTA: 4 is active, 1 down, 2 and 3 between
      ports.push_back(info);
    }
    if (ports.empty()) ports.push_back(info);
    for (PortInfo& port : ports) {
      host_.tree.add({.kind = PartKind::kPort,
                      .above = nic,
                      .info = std::move(port),
                      .place = host_.xml.place_of(device)});
    }
  }

  HwlocHost& host_;
  PciRoot root_;
  XmlNodes objects_;                       // of root_'s functions
  std::vector<XmlNodes> devices_;          // of root_'s functions
  std::map<double, XmlNodes> odd_speeds_;  // in GB/s
};

}  // namespace

void add_hwloc_devices(HwlocHost& host, const std::vector<HwlocDevice>& devices) {
  HwlocDevices reader(host);
  for (const auto& [object, node] : devices) reader.add(object, node);
  reader.note_odd_speeds();
}

}  // namespace gxp
