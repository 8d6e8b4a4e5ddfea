#include "lib/tools/topology/model/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/base/error.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

constexpr int kMostGpus = 256;
constexpr int kMostNumaNodes = 64;
constexpr uint64_t kGiB = uint64_t{1} << 30;

struct CpuModel {
  std::string_view vendor;
  std::string_view model_name;
  int family, model;
  int cores;  // of a NUMA node, two threads each
};
struct GpuModel {
  std::string_view model_name;
  std::string_view device;  // PCI id
  int compute_capability;
  uint64_t memory_bytes;
  double gt_per_s;
};
struct NicModel {
  std::string_view model_name;
  std::string_view vendor, device;
  std::string_view stem;  // of the ports' names
  std::string_view link_layer;
  double mbit_per_s;
};
// The devices below each PCIe switch; the switches are spread evenly over the NUMA nodes.
struct Shape {
  int numa_nodes = 1;
  int switches = 0;  // 0: the GPUs are directly below the NUMA nodes
  int gpus = 1;      // of each switch; of each NUMA node if there are none
  int nics = 0;
};
enum class Wiring { kNone, kSwitched, kRing, kMesh };
struct NvLinks {
  Wiring wiring = Wiring::kNone;
  int links = 0;  // from a GPU to all switches, or to each neighbour
  int switches = 0;
};

struct Machine {
  std::string_view name, summary;
  const CpuModel* cpu;
  const GpuModel* gpu;
  const NicModel* nic;
  Shape shape;
  NvLinks nvlinks;
};

// NVIDIA's DGX user guides; data sheets of the processors.
constexpr CpuModel kRome{"AuthenticAMD", "AMD EPYC 7742 64-Core Processor", 23, 49, 64};
constexpr CpuModel kRomeQuarter{"AuthenticAMD", "AMD EPYC 7V12 64-Core Processor", 23, 49, 24};
constexpr CpuModel kMilan{"AuthenticAMD", "AMD EPYC 7R13 Processor", 25, 1, 48};
constexpr CpuModel kSapphireRapids{"GenuineIntel", "Intel(R) Xeon(R) Platinum 8480C", 6, 143, 56};
constexpr CpuModel kEmeraldRapids{"GenuineIntel", "INTEL(R) XEON(R) PLATINUM 8570", 6, 207, 56};
constexpr GpuModel kA100{"NVIDIA A100-SXM4-40GB", "0x20b0", 80, 40 * kGiB, 16};
constexpr GpuModel kH100{"NVIDIA H100 80GB HBM3", "0x2330", 90, 80 * kGiB, 32};
constexpr GpuModel kB200{"NVIDIA B200", "0x2901", 100, 180 * kGiB, 32};
constexpr NicModel kHdr{"ConnectX-6", "0x15b3", "0x101b", "mlx5_", "InfiniBand", 200'000};
constexpr NicModel kNdr{"ConnectX-7", "0x15b3", "0x1021", "mlx5_", "InfiniBand", 400'000};
constexpr NicModel kEfa{"Elastic Fabric Adapter", "0x1d0f", "0xefa2", "rdmap", "Ethernet", 100'000};

constexpr std::array kMachines = {
    Machine{"dgx-a100", "NVIDIA DGX A100: 8 GPUs, 6 NVSwitches; 2 GPUs and 2 NICs a PCIe switch",
            &kRome, &kA100, &kHdr, Shape{2, 4, 2, 2}, NvLinks{Wiring::kSwitched, 12, 6}},
    Machine{"dgx-h100", "NVIDIA DGX H100: 8 GPUs, 4 NVSwitches; a GPU and a NIC a PCIe switch",
            &kSapphireRapids, &kH100, &kNdr, Shape{2, 8, 1, 1}, NvLinks{Wiring::kSwitched, 18, 4}},
    Machine{"dgx-b200", "NVIDIA DGX B200: 8 GPUs, 2 NVSwitches; a GPU and a NIC a PCIe switch",
            &kEmeraldRapids, &kB200, &kNdr, Shape{2, 8, 1, 1}, NvLinks{Wiring::kSwitched, 18, 2}},
    Machine{"azure-ndv4", "Azure ND96asr_v4: 8 A100 in 4 NUMA nodes; 2 GPUs and 2 NICs in each",
            &kRomeQuarter, &kA100, &kHdr, Shape{4, 4, 2, 2}, NvLinks{Wiring::kSwitched, 12, 6}},
    Machine{"aws-p5", "AWS p5.48xlarge: 8 H100; a GPU and 4 EFA NICs a PCIe switch", &kMilan,
            &kH100, &kEfa, Shape{2, 8, 1, 4}, NvLinks{Wiring::kSwitched, 18, 4}},
};

// Shapes have a number or two: "ring:8", "2xnuma:4".
struct Family {
  std::string_view name, summary;
  std::string_view stem;
  bool counts_numa_nodes;  // KxSTEM:N
  bool has_nic;
  NvLinks nvlinks{};
};
constexpr std::array kFamilies = {
    Family{"ring:N", "N GPUs in a ring, 4 NVLinks to each neighbour, below one NUMA node", "ring",
           false, false, NvLinks{Wiring::kRing, 4, 0}},
    Family{"mesh:N", "N GPUs, 2 NVLinks between any two, below one NUMA node", "mesh", false, false,
           NvLinks{Wiring::kMesh, 2, 0}},
    Family{"nvswitch:N", "N GPUs, each with 18 NVLinks to 4 NVSwitches, below one NUMA node",
           "nvswitch", false, false, NvLinks{Wiring::kSwitched, 18, 4}},
    Family{"pcie:N", "N GPUs and a NIC below one NUMA node; no NVLinks", "pcie", false, true},
    Family{"Kxnuma:N", "K NUMA nodes with N GPUs and a NIC each; no NVLinks", "numa", true, true},
};

constexpr auto kSyntheticNames = [] {
  std::array<SyntheticName, kMachines.size() + kFamilies.size()> names{};
  size_t i = 0;
  for (const Machine& machine : kMachines) names[i++] = {machine.name, machine.summary};
  for (const Family& family : kFamilies) names[i++] = {family.name, family.summary};
  return names;
}();

// The parts of "2xnuma:4"; -1: there is no number, or it does not fit an int.
struct ShapeName {
  const Family* family = nullptr;
  int numa_nodes = 1;
  int gpus = -1;
};

ShapeName parse_shape(std::string_view name) {
  ShapeName shape;
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos) return shape;
  std::string_view stem = name.substr(0, colon);
  const size_t times = stem.find('x');
  const bool has_times =
      times != std::string_view::npos && stem.front() >= '0' && stem.front() <= '9';
  if (has_times) {
    shape.numa_nodes = whole_number<int>(stem.substr(0, times)).value_or(-1);
    stem.remove_prefix(times + 1);
  }
  for (const Family& family : kFamilies) {
    if (family.stem == stem && family.counts_numa_nodes == has_times) shape.family = &family;
  }
  shape.gpus = whole_number<int>(name.substr(colon + 1)).value_or(-1);
  return shape;
}

const Machine* find_machine(std::string_view name) {
  const auto found = std::ranges::find(kMachines, name, &Machine::name);
  return found == kMachines.end() ? nullptr : &*found;
}

Machine machine_of(const std::string& name, const ShapeName& shape) {
  const int least = shape.family->nvlinks.wiring == Wiring::kNone ? 1 : 2;
  if (shape.numa_nodes < 1 || shape.numa_nodes > kMostNumaNodes)
    fail(ErrorKind::kUsage, "topology '{}': K must be from 1 to {}", name, kMostNumaNodes);
  if (shape.gpus < least || shape.gpus > kMostGpus / shape.numa_nodes)
    fail(ErrorKind::kUsage, "topology '{}': there must be from {} to {} GPUs", name, least,
         kMostGpus);
  return {.name = name,
          .summary = shape.family->summary,
          .cpu = &kSapphireRapids,
          .gpu = &kH100,
          .nic = &kNdr,
          .shape = {shape.numa_nodes, 0, shape.gpus, shape.family->has_nic ? 1 : 0},
          .nvlinks = shape.family->nvlinks};
}

class SyntheticBuilder {
 public:
  explicit SyntheticBuilder(const Machine& machine) : machine_(machine) {
    host_.name = machine.name;
    host_.source = "made up";
    host_.notes = {fmt::format("{}: {}; bus ids and names of NICs are made up", machine.name,
                               machine.summary)};
  }

  HostTree build() {
    const Shape& shape = machine_.shape;
    for (int node = 0; node < shape.numa_nodes; ++node) {
      const PartId id = add_numa_node(node);
      const int switches = shape.switches / shape.numa_nodes;
      for (int i = 0; i < switches; ++i) add_devices(add_switch(id));
      if (switches == 0) add_devices(id);
    }
    add_nvlinks();
    return std::move(host_);
  }

 private:
  std::string next_bus() {
    ++devices_;
    return fmt::format("{:04x}:{:02x}:00.0", devices_ >> 8, devices_ & 0xff);
  }
  [[nodiscard]] PcieLink link() const {
    const PcieRate rate{.gt_per_s = machine_.gpu->gt_per_s, .lanes = 16};
    return {.now = rate, .most = rate};
  }
  Part device(PartKind kind, PartId above, PciIdentity identity) {
    return {.kind = kind,
            .above = above,
            .bus_id = next_bus(),
            .identity = std::move(identity),
            .link = link()};
  }
  PartId add_switch(PartId above) {
    return host_.add(device(PartKind::kPcieSwitch, above, {.class_code = "0x060400"}));
  }

  PartId add_numa_node(int node) {
    const CpuModel& cpu = *machine_.cpu;
    const int all_cores = cpu.cores * machine_.shape.numa_nodes;
    CpuSet cpus;
    for (int core = node * cpu.cores; core < (node + 1) * cpu.cores; ++core) {
      cpus.add(core);
      cpus.add(all_cores + core);
    }
    return host_.add({.kind = PartKind::kNumaNode,
                      .info = NumaNodeInfo{.number = node,
                                           .architecture = "x86_64",
                                           .vendor = std::string(cpu.vendor),
                                           .model_name = std::string(cpu.model_name),
                                           .family = cpu.family,
                                           .model = cpu.model,
                                           .affinity = cpus.to_map(),
                                           .cores = cpu.cores,
                                           .threads = 2 * cpu.cores}});
  }

  void add_devices(PartId above) {
    for (int i = 0; i < machine_.shape.gpus; ++i) add_gpu(above);
    for (int i = 0; i < machine_.shape.nics; ++i) add_nic(above);
  }

  void add_gpu(PartId above) {
    const GpuModel& gpu = *machine_.gpu;
    const int number = int(gpus_.size());
    Part part =
        device(PartKind::kGpu, above,
               {.class_code = "0x030200", .vendor = "0x10de", .device = std::string(gpu.device)});
    part.info = GpuInfo{.number = number,
                        .rank = number,
                        .compute_capability = gpu.compute_capability,
                        .gpu_direct = true,
                        .model_name = std::string(gpu.model_name),
                        .memory_bytes = gpu.memory_bytes};
    gpus_.push_back(host_.add(std::move(part)));
  }

  void add_nic(PartId above) {
    const NicModel& nic = *machine_.nic;
    Part part = device(PartKind::kNic, above,
                       {.class_code = "0x020700",
                        .vendor = std::string(nic.vendor),
                        .device = std::string(nic.device)});
    part.info = NicInfo{.model_name = std::string(nic.model_name)};
    const PartId id = host_.add(std::move(part));
    host_.add({.kind = PartKind::kPort,
               .above = id,
               .info = PortInfo{.number = ports_,
                                .name = fmt::format("{}{}", nic.stem, ports_),
                                .mbit_per_s = nic.mbit_per_s,
                                .port = 1,
                                .guid = fmt::format("{:#x}", ports_ + 1),
                                .gpu_direct = true,
                                .link_layer = std::string(nic.link_layer),
                                .state = "active"}});
    ++ports_;
  }

  void add_nvswitches() {
    const int switches = machine_.nvlinks.switches;
    std::vector<PartId> ids;
    for (int i = 0; i < switches; ++i)
      ids.push_back(host_.add(device(PartKind::kNvSwitch, kNoPart, {.class_code = "0x068000"})));
    for (const PartId gpu : gpus_) {
      for (int i = 0; i < switches; ++i) {
        host_.add_cross_link({.from = gpu,
                              .to = ids[size_t(i)],
                              .target = host_[ids[size_t(i)]].bus_id,
                              .target_class = std::string(kNvSwitchClass),
                              .count = (machine_.nvlinks.links + i) / switches});
      }
    }
  }

  void add_nvlinks() {
    const size_t gpus = gpus_.size();
    if (machine_.nvlinks.wiring == Wiring::kSwitched) add_nvswitches();
    for (size_t from = 0; from < gpus; ++from) {
      for (size_t to = 0; to < gpus; ++to) {
        const bool are_neighbours = (from + 1) % gpus == to || (to + 1) % gpus == from;
        if (from == to) continue;
        if (machine_.nvlinks.wiring == Wiring::kMesh ||
            (machine_.nvlinks.wiring == Wiring::kRing && are_neighbours))
          join(from, to);
      }
    }
  }

  void join(size_t from, size_t to) {
    host_.add_cross_link({.from = gpus_[from],
                          .to = gpus_[to],
                          .target = host_[gpus_[to]].bus_id,
                          .target_class = "0x030200",
                          .count = machine_.nvlinks.links});
  }

  const Machine& machine_;
  HostTree host_;
  std::vector<PartId> gpus_;
  int devices_ = 0;
  int ports_ = 0;
};

// The group that thing i of `count` falls into, if they are spread evenly over `groups`.
int group_of(int i, int count, int groups) { return int(int64_t{i} * groups / count); }

}  // namespace

std::span<const SyntheticName> synthetic_names() { return kSyntheticNames; }

bool is_synthetic(std::string_view name) {
  return find_machine(name) != nullptr || parse_shape(name).family != nullptr;
}

HostTree make_synthetic(const std::string& name) {
  if (const Machine* machine = find_machine(name)) return SyntheticBuilder(*machine).build();
  return SyntheticBuilder(machine_of(name, parse_shape(name))).build();
}

HostTree make_regular_host(const HostDescription& description) {
  constexpr int kLanes = 16;
  HostTree host;
  const PcieLink link{.now = {description.pcie_gb_per_s / kLanes / kGbPerTransfer, kLanes}};
  std::vector<PartId> switches;
  const int count = std::max(description.nics, description.numa_nodes);
  for (int node = 0; node < description.numa_nodes; ++node) {
    const PartId id = host.add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{.number = node}});
    for (int i = 0; i < count; ++i) {
      if (group_of(i, count, description.numa_nodes) == node)
        switches.push_back(host.add({.kind = PartKind::kPcieSwitch, .above = id, .link = link}));
    }
  }
  const auto switch_of = [&](int i, int of) { return switches[size_t(group_of(i, of, count))]; };
  for (int i = 0; i < description.nics; ++i) {
    const PartId nic = host.add({.kind = PartKind::kNic,
                                 .above = switch_of(i, description.nics),
                                 .link = link,
                                 .info = NicInfo{}});
    host.add({.kind = PartKind::kPort, .above = nic, .info = PortInfo{.number = i}});
  }
  const PartId nvswitch =
      description.nvlink_gb_per_s > 0 ? host.add({.kind = PartKind::kNvSwitch}) : kNoPart;
  for (int i = 0; i < description.gpus; ++i) {
    const PartId gpu = host.add({.kind = PartKind::kGpu,
                                 .above = switch_of(i, description.gpus),
                                 .link = link,
                                 .info = GpuInfo{.number = i}});
    if (nvswitch != kNoPart)
      host.add_cross_link({.from = gpu, .to = nvswitch, .gb_per_s = description.nvlink_gb_per_s});
  }
  return host;
}

}  // namespace gxp
