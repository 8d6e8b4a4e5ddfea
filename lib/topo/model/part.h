// The parts of a host and the links between them, each with the facts that its source gives; those
// that it does not give are empty, 0 or have no value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/topo/model/cpu_set.h"
#include "lib/topo/model/part_id.h"
#include "lib/topo/model/source_text.h"

namespace gxp {

struct PcieRate {
  double gt_per_s = 0;  // of a lane; 0: unknown
  int lanes = 0;        // 0: unknown
};

// Linux writes 255 for an unknown width, and reads 63 from a device that no longer answers.
constexpr bool is_link_width(double lanes) { return lanes > 0 && lanes <= 64 && lanes != 63; }

// The payload of a lane per transfer, in GB: headers and the line code take a quarter.
inline constexpr double kGbPerTransfer = 0.75 / 8;

// PCI Express Base 6.0, from the first generation on.
struct PcieGeneration {
  double gt_per_s;
  double coded_share;  // what the line code leaves: 8b/10b, 128b/130b; of a flit 242 of 256 bytes
};
inline constexpr std::array<PcieGeneration, 6> kPcieGenerations = {{{2.5, 0.8},
                                                                    {5, 0.8},
                                                                    {8, 128.0 / 130},
                                                                    {16, 128.0 / 130},
                                                                    {32, 128.0 / 130},
                                                                    {64, 242.0 / 256}}};

// The link from a part up to the one above it.
struct PcieLink {
  PcieRate now{};
  PcieRate most{};           // what both ends could do
  std::string speed_text{};  // as the source wrote it: "16.0 GT/s PCIe"
  std::string width_text{};
};

// Hexadecimal, as "0x060400", "0x15b3"; "": unknown.
struct PciIdentity {
  std::string class_code{}, vendor{}, device{}, subsystem_vendor{}, subsystem_device{};
};

struct CacheInfo {
  int level = 0;
  uint64_t bytes = 0;  // of each
  int count = 0;       // in the NUMA node
};

struct NumaNodeInfo {
  std::optional<int> number{};
  std::string architecture{};  // "x86_64"
  std::string vendor{};        // "GenuineIntel"
  std::string model_name{};    // "AMD EPYC 9654 96-Core Processor"
  std::optional<int> family{}, model{};
  std::string affinity{};   // words of 32 bits in hexadecimal, the highest first: Linux's cpumap
  std::string host_hash{};  // NCCL's
  int package = -1;
  int cores = 0;
  int threads = 0;
  uint64_t memory_bytes = 0;
  std::vector<CacheInfo> caches{};
};

struct GpuInfo {
  std::optional<int> number{};              // of the driver: NCCL's dev
  std::optional<int> rank{};                // in the communicator that was dumped
  std::optional<int> compute_capability{};  // 90: sm_90; of an AMD GPU its compute units
  std::string gcn{};                        // AMD's architecture, as RCCL says it: "gfx942", "906"
  std::optional<bool> gpu_direct{};         // NCCL's gdr
  std::string model_name{};
  uint64_t memory_bytes = 0;
  std::string uuid{};                 // "GPU-8932f937-..."; "": unknown
  std::vector<std::string> slices{};  // UUIDs of its MIG devices, "MIG-a65afc88-..."
  bool is_sliced = false;             // into MIG devices, whose UUIDs may not be known
  // nvidia-smi's words for the NUMA nodes near it, and for that of its own memory: "0,2-17", "1".
  std::string near_nodes{}, memory_node{};
};

struct NicInfo {
  std::string model_name{};
};

struct PortInfo {
  std::optional<int> number{};  // NCCL's dev
  std::string name{};           // "mlx5_0", "eth0"
  std::string interface {};     // "ib0", of an RDMA device
  double mbit_per_s = 0;        // 0: unknown
  std::optional<int> port{};
  std::string guid{};
  std::optional<double> latency_us{};
  std::optional<int> max_connections{};
  std::optional<bool> gpu_direct{};
  std::string link_layer{};  // "InfiniBand", "Ethernet"
  std::string state{};       // "active", "down"
  // Zeros are no port's guid.
  [[nodiscard]] bool has_guid() const { return guid.find_first_not_of("0x") != std::string::npos; }
};

struct Part {
  PartKind kind = PartKind::kPcieDevice;
  PartId above = kNoPart;  // none: of the host itself
  std::string bus_id{};    // "0000:3b:00.0"; "": it has none
  PciIdentity identity{};
  PcieLink link{};
  std::variant<std::monostate, NumaNodeInfo, GpuInfo, NicInfo, PortInfo> info{};  // by `kind`
  std::string name{};  // that its source gives it, "" if none
  // From NCCL's XML: attributes without a field here (those of the <gpu> or <nic> within as
  // "gpu/arch"), and unknown elements as XML (those within the <gpu> are the attribute "gpu/").
  Attributes other{};
  std::string unknown_elements{};
  SourceLocation place{};
  std::vector<std::string> measured{};  // by gxp topo --probe: a line for each measurement
  std::vector<PartId> below{};          // in the source's order
};

// The facts of a part of that kind; of a part of another kind no fact is known.
template <class Info>
const Info& info_of(const Part& part) {
  static const Info kUnknown;
  const auto* info = std::get_if<Info>(&part.info);
  return info == nullptr ? kUnknown : *info;
}

// The CPUs of a NUMA node; none: they are not known.
inline CpuSet cpus_of(const Part& node) {
  return CpuSet::parse_map(info_of<NumaNodeInfo>(node).affinity).value_or(CpuSet());
}

// PCI classes that a link's end has, as NCCL names them.
inline constexpr std::string_view kNvSwitchClass = "0x068000";
inline constexpr std::string_view kCpuBridgeClass = "0x068001";

// The part at one end lists the link; the part at the other end may list it too.
struct CrossLink {
  CrossLinkKind kind = CrossLinkKind::kNvLink;
  PartId from = kNoPart;
  PartId to = kNoPart;         // none: `target` names nothing in this host
  std::string target{};        // bus id as written; "": none is said
  std::string target_class{};  // "0x068000": an NVSwitch
  int count = 1;               // links side by side
  double gb_per_s = 0;         // of each; 0: its source does not say
  Attributes other{};
  SourceLocation place{};
};

}  // namespace gxp
