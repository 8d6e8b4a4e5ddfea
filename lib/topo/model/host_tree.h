// One host as a tree of parts: NUMA nodes, PCIe bridges below them, devices below the bridges; and
// cross links, which are no part of the tree (NVLink, xGMI, chip to chip). Every source of
// topologies makes one; every view, check and plan reads one.
//
// The tree holds what the source said, in its order, and nothing that a rule added: unknown facts
// stay unknown (empty, 0 or no value), and text that gxp has no field for is kept as text. A tree
// that was read from NCCL's XML is therefore written back as the same topology.
//   Names    by their kind's number, see names_of_parts(); bus ids are in lower case.
//   Limits   kMaxParts, kMaxCrossLinks, kMaxDepth: add...() throw kConfig beyond.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lib/topo/model/cpu_set.h"
#include "lib/topo/model/gpu_direct.h"

namespace gxp {

enum class PartKind : uint8_t {
  kNumaNode,    // a socket or a part of one, with its memory: what NCCL calls a CPU
  kHostBridge,  // a PCIe root of a NUMA node; NCCL's XML has none
  kPcieSwitch,  // any bridge between two PCIe links
  kGpu,
  kNic,   // one adapter; its ports lie below it
  kPort,  // of a NIC: what NCCL calls a net
  kNvSwitch,
  kPcieDevice,  // anything else on PCIe
};

std::string_view to_string(PartKind kind);  // "NUMA node"

using PartId = uint32_t;  // index into parts()
inline constexpr PartId kNoPart = ~PartId{0};

// A place in the source, from 1; 0: the source is no text.
struct SourcePlace {
  int line = 0;
  int column = 0;
};

// "NAME:LINE:COLUMN"; NAME where the place is no text.
std::string at_place(std::string_view name, SourcePlace place);

using Attributes = std::vector<std::pair<std::string, std::string>>;

struct PcieRate {
  double gt_per_s = 0;  // of a lane; 0: unknown
  int lanes = 0;        // 0: unknown
};

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
  SourcePlace place{};
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

enum class CrossLinkKind : uint8_t {
  kNvLink,
  kXgmi,
  kChipToChip,  // between a GPU and its NUMA node
  kPcie,        // between two bridges (NCCL's pcilink)
};

std::string_view to_string(CrossLinkKind kind);  // "NVLink"

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
  SourcePlace place{};
};

class HostTree {
 public:
  static constexpr size_t kMaxParts = 1u << 14;
  static constexpr size_t kMaxCrossLinks = 1u << 16;
  static constexpr int kMaxDepth = 40;

  std::string name;                 // of the host, or of the file
  std::string source;               // "NCCL topology XML, version 1"
  std::string dialect;              // the version that its writer named: "1", "2"; "": none
  std::vector<std::string> notes;   // what the source did not say or said wrongly: a sentence each
  std::vector<std::string> absent;  // of a live host: what is not there, and what that costs
  // Of a host by its files; none: the source says of each device whether it offers it (gdr), or
  // nothing.
  std::optional<GpuDirectFacts> gpu_direct{};
  // For two GPUs, what the driver says of peer-to-peer from first to second, in nvidia-smi's
  // words: "OK", "TNS"; none: the source does not tell.
  std::map<std::pair<PartId, PartId>, std::string> peer_states;
  bool places_known = true;  // false: how the tree joins GPUs is made up
  // false: the source has no speed of anything, or none of a port, whatever it is. A port without
  // a speed has NCCL's default otherwise.
  bool speeds_known = true;
  bool port_speeds_known = true;
  Attributes other;  // of NCCL's <system>, as Part::other
  std::string unknown_elements;

  // Appends the part below part.above.
  PartId add(Part part);
  void add_cross_link(CrossLink link);

  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  [[nodiscard]] const std::vector<CrossLink>& cross_links() const { return cross_links_; }
  [[nodiscard]] const std::vector<PartId>& roots() const { return roots_; }  // NUMA nodes, mostly
  [[nodiscard]] const Part& operator[](PartId id) const { return parts_[id]; }
  [[nodiscard]] Part& operator[](PartId id) { return parts_[id]; }
  [[nodiscard]] std::vector<CrossLink>& cross_links() { return cross_links_; }
  // Depth first, in the order of the tree.
  [[nodiscard]] std::vector<PartId> all_of(PartKind kind) const;
  // The part itself, or the nearest one above it, of `kind`; or kNoPart.
  [[nodiscard]] PartId find_above(PartId id, PartKind kind) const;
  [[nodiscard]] PartId find_bus(std::string_view bus_id) const;  // in any case; or kNoPart

 private:
  std::vector<Part> parts_;
  std::vector<CrossLink> cross_links_;
  std::vector<PartId> roots_;
};

// Whether a NIC or another device is on PCIe and not virtual: it has a bus id, or it is below a
// bridge whose source gives no bus ids.
bool is_on_pcie(const HostTree& host, PartId device);

// NCCL's hash of the host that the part is in: a file of hosts that NVLink joins has several. "":
// the source has none.
std::string_view host_hash_of(const HostTree& host, PartId part);
size_t count_hosts(const HostTree& host);  // by these hashes

// Whether the link leads to an NVSwitch, which need not be a part.
bool leads_to_nvswitch(const HostTree& host, const CrossLink& link);

// The numbers that the source gives to parts of a kind, if each has one of its own; else they are
// counted.
std::vector<int> numbers_of(const HostTree& host, const std::vector<PartId>& parts);
// Sorts them by numbers_of().
void sort_by_number(const HostTree& host, std::vector<PartId>& parts);

// The name that the source gives a part, or its port; "": none.
std::string given_name(const Part& part);
// The names that users know, by part: "GPU0" by the driver's number where all GPUs have one, else
// by the tree's order; "NIC0" by ports likewise; "NUMA0"; "mlx5_0" for a port with a name (a number
// follows a name that is taken); else kind and bus id. All names differ.
std::vector<std::string> names_of_parts(const HostTree& host);
// The part with such a name, interface or bus id, in upper or lower case; or kNoPart.
PartId find_part(const HostTree& host, std::string_view name);

}  // namespace gxp
