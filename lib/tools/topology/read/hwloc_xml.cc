#include "lib/tools/topology/read/hwloc_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/text/ascii.h"
#include "lib/tools/topology/read/hwloc_objects.h"

namespace gxp {
namespace {

constexpr std::array kContainers = {"Machine", "Package", "Group",    "Die",
                                    "Cluster", "Core",    "MemCache", "PU"};

bool is_device_type(std::string_view type) {
  return type == "Bridge" || type == "PCIDev" || type == "OSDev";
}

// "L3Cache"; in version 1 "Cache".
bool is_cache(std::string_view type) {
  if (type == "Cache") return true;
  return type.size() >= 7 && type[0] == 'L' && type.find("Cache") == type.size() - 5;
}

// The objects with CPUs, by what they are.
struct CpuObjects {
  XmlNodes nodes, packages, cores, threads, caches;
  std::vector<std::pair<pugi::xml_node, pugi::xml_node>> devices;  // and the object they hang on
};

class HwlocReader {
 public:
  HwlocReader(std::string_view text, const std::string& name)
      : xml_(text, name), host_{.xml = xml_}, name_(name) {}

  HostTree read() {
    const pugi::xml_node topology = xml_.root("topology");
    read_version(topology);
    topology_ = topology;
    machine_ = topology.child("object");
    const std::string_view type = type_of(machine_);
    // Version 1 merges a machine with its only node, if asked to.
    if (type != "Machine" && (host_.version > 1 || type != "NUMANode"))
      xml_.fail_at(topology, "it has no object of type Machine");
    collect(machine_, 1);
    add_nodes();
    std::vector<HwlocDevice> devices;
    for (const auto& [device, above] : found_.devices)
      devices.push_back({device, node_near(above, device)});
    add_hwloc_devices(host_, devices);
    read_hwloc_matrices(host_, topology);
    HostTree& tree = host_.tree;
    tree.name = cpu_info(machine_, "HostName");
    if (tree.name.empty()) tree.name = name_;
    tree.source = fmt::format("hwloc XML, version {}", host_.version);
    tree.port_speeds_known = false;
    return std::move(tree);
  }

 private:
  void read_version(const pugi::xml_node& topology) {
    const pugi::xml_attribute said = topology.attribute("version");
    const std::string_view version = said ? said.value() : "1.0";  // which version 1 leaves out
    if (version.size() < 2 || version[0] < '1' || version[0] > '3' || version[1] != '.') {
      xml_.fail_at(topology, fmt::format("<topology version=\"{}\">: versions 1 to 3 are known",
                                         version.substr(0, 40)));
    }
    host_.version = version[0] - '0';
  }

  [[nodiscard]] CpuSet cpus_of(const pugi::xml_node& object) const {
    const pugi::xml_attribute text = object.attribute("cpuset");
    const auto cpus = CpuSet::parse_map(text.value());
    if (!cpus) {
      xml_.fail_at(object, fmt::format("<object cpuset=\"{}\">: must be words of 32 bits",
                                       std::string_view(text.value()).substr(0, 40)));
    }
    return *cpus;
  }

  void sort_in(const pugi::xml_node& object, std::string_view type) {
    if (type == "NUMANode") return found_.nodes.push_back(object);
    if (type == "Package" || type == "Socket") return found_.packages.push_back(object);
    if (type == "Core") return found_.cores.push_back(object);
    if (type == "PU") return found_.threads.push_back(object);
    if (is_cache(type)) return found_.caches.push_back(object);
    if (std::ranges::find(kContainers, type) == kContainers.end() && unknown_.emplace(type).second)
      host_.tree.notes.push_back(fmt::format("{}: objects of type \"{}\" are unknown; ignored",
                                             xml_.at(object), type.substr(0, 40)));
  }

  void collect(const pugi::xml_node& object, int depth) {
    if (depth > kMaxHwlocDepth)
      xml_.fail_at(object, fmt::format("objects lie more than {} deep", kMaxHwlocDepth));
    sort_in(object, type_of(object));
    for (const pugi::xml_node below : object.children("object")) {
      if (is_device_type(type_of(below))) {
        found_.devices.emplace_back(below, object);
      } else if (type_of(below) != "Misc") {
        collect(below, depth + 1);
      }
    }
  }

  // The package of these CPUs, or the machine: either has what is known of its CPUs.
  [[nodiscard]] pugi::xml_node package_of(const CpuSet& cpus) const {
    for (const pugi::xml_node& package : found_.packages) {
      if (cpus_of(package).intersects(cpus)) return package;
    }
    return machine_;
  }

  // A fact of the package, of the machine or, in version 3, of the whole.
  [[nodiscard]] std::string cpu_info(const pugi::xml_node& package, std::string_view name) const {
    for (const pugi::xml_node& object : {package, machine_, topology_}) {
      if (std::string text = info_of(object, name); !text.empty()) return text;
    }
    return "";
  }

  // NCCL's name of the architecture; by the CPU where the file has none.
  [[nodiscard]] std::string architecture_of(const pugi::xml_node& package) const {
    const std::string said = cpu_info(package, "Architecture");
    const std::string vendor = cpu_info(package, "CPUVendor");
    if (said == "aarch64" || !cpu_info(package, "CPUImplementer").empty()) return "arm64";
    if (said.starts_with("ppc64") || cpu_info(package, "CPUModel").starts_with("POWER"))
      return "ppc64";
    return said.empty() && (vendor == "GenuineIntel" || vendor == "AuthenticAMD") ? "x86_64" : said;
  }

  [[nodiscard]] int count_within(const XmlNodes& objects, const CpuSet& cpus) const {
    return int(std::ranges::count_if(
        objects, [&](const auto& object) { return cpus_of(object).intersects(cpus); }));
  }

  void add_caches(NumaNodeInfo& node, const CpuSet& cpus) const {
    std::map<std::pair<int, uint64_t>, int> counts;
    for (const pugi::xml_node& cache : found_.caches) {
      constexpr int kInstructions = 2;
      if (cache.attribute("cache_type").as_int() == kInstructions) continue;
      if (!cpus_of(cache).intersects(cpus)) continue;
      ++counts[{cache.attribute("depth").as_int(), cache.attribute("cache_size").as_ullong()}];
    }
    for (const auto& [cache, count] : counts)
      node.caches.push_back({cache.first, cache.second, count});
  }

  // Families as NCCL counts them, see sysfs_cpus.cc.
  void describe(NumaNodeInfo& node, const CpuSet& cpus) const {
    const pugi::xml_node package = package_of(cpus);
    node.architecture = architecture_of(package);
    node.vendor = cpu_info(package, "CPUVendor");
    node.model_name = trimmed(cpu_info(package, "CPUModel"));  // AMD's ends with blanks
    const auto family = parse_small_number(cpu_info(package, "CPUFamilyNumber"));
    if (family) node.family = *family > 15 ? 15 + (*family - 15) * 16 : *family;
    node.model = parse_small_number(cpu_info(package, "CPUModelNumber"));
    if (package != machine_) node.package = package.attribute("os_index").as_int(-1);
    node.affinity = cpus.to_map();
    node.cores = count_within(found_.cores, cpus);
    node.threads = count_within(found_.threads, cpus);
    add_caches(node, cpus);
  }

  void add_nodes() {
    // In version 1 a machine with one node has its memory itself.
    if (found_.nodes.empty() && host_.version == 1) found_.nodes.push_back(machine_);
    if (found_.nodes.empty()) xml_.fail_at(machine_, "the machine has no NUMA node");
    std::ranges::stable_sort(found_.nodes, {}, [](const pugi::xml_node& node) {
      return node.attribute("os_index").as_int();
    });
    for (const pugi::xml_node& object : found_.nodes) {
      NumaNodeInfo node;
      const CpuSet cpus = cpus_of(object);
      node.number = int(xml_.number(object, object.attribute("os_index"), {0, 1 << 20}));
      node.memory_bytes = object.attribute("local_memory").as_ullong();
      describe(node, cpus);
      const PartId part = host_.tree.add(
          {.kind = PartKind::kNumaNode, .info = std::move(node), .place = xml_.place_of(object)});
      nodes_.push_back({part, cpus});
    }
    for (const pugi::xml_node& package : found_.packages) {
      const std::string index =
          fmt::format("Package:{}", package.attribute("gp_index").as_string());
      host_.by_index.emplace(index, nearest(cpus_of(package)).front());
    }
    note_stray_threads();
  }

  // lstopo hides nodes that its process was not allowed to use.
  void note_stray_threads() {
    const auto stray = std::ranges::count_if(found_.threads, [&](const auto& thread) {
      const CpuSet cpus = cpus_of(thread);
      return std::ranges::none_of(nodes_,
                                  [&](const auto& node) { return node.cpus.intersects(cpus); });
    });
    if (stray == 0) return;
    host_.tree.notes.push_back(
        fmt::format("{}: {} of {} threads are in no NUMA node of the file; lstopo --disallowed "
                    "includes all",
                    xml_.at(machine_), stray, found_.threads.size()));
  }

  [[nodiscard]] std::vector<PartId> nearest(const CpuSet& cpus) const {
    std::vector<PartId> near;
    for (const HwlocNode& node : nodes_) {
      if (node.cpus.intersects(cpus)) near.push_back(node.part);
    }
    if (near.empty()) near.push_back(nodes_[0].part);
    return near;
  }

  PartId node_near(const pugi::xml_node& above, const pugi::xml_node& device) {
    const std::vector<PartId> near = nearest(cpus_of(above));
    if (near.size() > 1) {
      host_.tree.notes.push_back(fmt::format(
          "{}: this device is near {} NUMA nodes; it is shown below the first, so paths "
          "to it may be wrong",
          xml_.at(device), near.size()));
    }
    return near[0];
  }

  XmlText xml_;
  HwlocHost host_;
  std::string name_;
  pugi::xml_node topology_, machine_;
  CpuObjects found_;
  std::vector<HwlocNode> nodes_;
  std::set<std::string, std::less<>> unknown_;
};

}  // namespace

std::string_view type_of(const pugi::xml_node& object) { return object.attribute("type").value(); }

std::string info_of(const pugi::xml_node& object, std::string_view name) {
  for (const pugi::xml_node info : object.children("info")) {
    if (info.attribute("name").value() == name) return info.attribute("value").value();
  }
  return "";
}

std::optional<int> parse_small_number(std::string_view text) {
  constexpr double kMost = 1 << 20;
  const auto value = parse_number(text);
  return value && *value >= 0 && *value <= kMost ? std::optional(int(*value)) : std::nullopt;
}

PcieRate pcie_rate_of(double gb_per_s) {
  constexpr double kTolerance = 0.005;  // hwloc writes six digits; 2.0 and 1.97 are not the same
  for (const int lanes : {16, 8, 4, 2, 1, 32, 12}) {
    for (const PcieGeneration& each : kPcieGenerations) {
      const double full = lanes * each.gt_per_s * each.coded_share / 8;
      if (std::abs(gb_per_s - full) < kTolerance * full) return {each.gt_per_s, lanes};
    }
  }
  return {};
}

HostTree read_hwloc_xml(std::string_view text, const std::string& name) {
  return HwlocReader(text, name).read();
}

}  // namespace gxp
