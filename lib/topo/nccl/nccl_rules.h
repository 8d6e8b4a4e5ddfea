// NCCL's constants for parts and links, and the links' physical bandwidths.
//   Units    GB/s of one direction.
//   Sources  NCCL 2.30.7, src/graph/topo.h, topo.cc (Apache-2.0); for xGMI RCCL 2.21, the same
//            files. Physical figures: PCI Express Base 6.0, table 1-1; NVIDIA's and AMD's data
//            sheets of the products that are named with the figures.
#pragma once

#include <string_view>

namespace gxp {

struct NumaNodeInfo;
struct PciIdentity;
struct PcieLink;

// Within a device, between bridges joined by pcilink, and to NICs without a PCIe device.
inline constexpr double kNcclLocalGbPerS = 5000;
// A port whose speed is absent or not above 0.
inline constexpr double kNcclUnknownPortMbitPerS = 10'000;
// NCCL refuses topology files of more elements than this.
inline constexpr int kNcclMostXmlNodes = 256;

// NCCL compares link_speed with the starts of a few texts, in order, and takes any other for 8
// GT/s: "32 GT/s PCIe/s" is known and "32.0 GT/s" is not. A lane carries three quarters of its
// rate, at 2.5 and 5 GT/s three fifths.
struct NcclPcieSpeed {
  double lane_gb_per_s = 0.75;
  bool known = false;
};
NcclPcieSpeed nccl_pcie_speed(std::string_view link_speed);
// Bandwidth of the whole link. A missing width counts as x16, as in NCCL. Where no source wrote the
// speed as text, the text that Linux writes for the link's fastest rate is taken.
double nccl_pcie_gb_per_s(const PcieLink& link);
// The fastest known rate without the line code. 0: rate or width is unknown.
double physical_pcie_gb_per_s(const PcieLink& link);

// Bandwidth of one NVLink, by compute capability (90: sm_90).
double nccl_nvlink_gb_per_s(int compute_capability);
double physical_nvlink_gb_per_s(int compute_capability);  // 0: not known
// Bandwidth of one xGMI link, by the GPU's "gcn": "gfx90a", or "910" for it.
double rccl_xgmi_gb_per_s(std::string_view gcn);
double physical_xgmi_gb_per_s(std::string_view gcn);  // 0: not known

// The bandwidth from this NUMA node to any other of the host.
double nccl_inter_numa_gb_per_s(const NumaNodeInfo& node);
double nccl_port_gb_per_s(double mbit_per_s);

enum class CpuVendor { kIntel, kAmd, kZhaoxin, kArm, kPower, kUnknown };
CpuVendor cpu_vendor(const NumaNodeInfo& node);

// The PCIe generation, 4 or 5, of a bridge that is one level of a Broadcom switch; 0: it is none.
// In generation 5 the two levels have different ids.
enum class SwitchLevel { kUpper, kLower };
int broadcom_generation(const PciIdentity& identity, SwitchLevel level);

}  // namespace gxp
