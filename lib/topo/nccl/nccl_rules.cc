#include "lib/topo/nccl/nccl_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "lib/topo/model/part.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

constexpr int kUnknownLanes = 16;

struct PcieSpeedText {
  std::string_view start;
  double lane_gb_per_s;
};

// Linux up to 5.6 writes the first form. In NCCL's order: the first that fits counts.
constexpr std::array<PcieSpeedText, 11> kPcieSpeeds = {{{"2.5 GT/s", 0.1875},
                                                        {"5 GT/s", 0.375},
                                                        {"8 GT/s", 0.75},
                                                        {"16 GT/s", 1.5},
                                                        {"32 GT/s", 3},
                                                        {"2.5 GT/s PCIe", 0.1875},
                                                        {"5.0 GT/s PCIe", 0.375},
                                                        {"8.0 GT/s PCIe", 0.75},
                                                        {"16.0 GT/s PCIe", 1.5},
                                                        {"32.0 GT/s PCIe", 3},
                                                        {"64.0 GT/s PCIe", 6}}};

// RCCL writes the newer products by name and the older ones by number.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kGcnNumbers = {
    {{"906", "gfx906"},
     {"908", "gfx908"},
     {"910", "gfx90a"},
     {"940", "gfx940"},
     {"941", "gfx941"},
     {"942", "gfx942"}}};

std::string_view gcn_name(std::string_view gcn) {
  for (const auto& [number, name] : kGcnNumbers) {
    if (gcn == number) return name;
  }
  return gcn;
}

uint64_t from_hexadecimal(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return leading_number<uint64_t>(text, nullptr, 16);
}

// A rate between two generations has the later one's line code.
double coded_share(double gt_per_s) {
  const auto* const row =
      std::ranges::lower_bound(kPcieGenerations, gt_per_s, {}, &PcieGeneration::gt_per_s);
  return (row == kPcieGenerations.end() ? kPcieGenerations.back() : *row).coded_share;
}

const PcieRate& fastest(const PcieLink& link) {
  return link.most.gt_per_s > 0 && link.most.lanes > 0 ? link.most : link.now;
}

}  // namespace

NcclPcieSpeed nccl_pcie_speed(std::string_view link_speed) {
  for (const PcieSpeedText& known : kPcieSpeeds) {
    if (link_speed.starts_with(known.start)) return {known.lane_gb_per_s, true};
  }
  return {};
}

double nccl_pcie_gb_per_s(const PcieLink& link) {
  const PcieRate& rate = fastest(link);
  const std::string text =
      link.speed_text.empty() ? fmt::format("{:.1f} GT/s PCIe", rate.gt_per_s) : link.speed_text;
  const int lanes = link.width_text.empty() ? rate.lanes : leading_number<int>(link.width_text);
  return (lanes > 0 ? lanes : kUnknownLanes) * nccl_pcie_speed(text).lane_gb_per_s;
}

double physical_pcie_gb_per_s(const PcieLink& link) {
  const PcieRate& rate = fastest(link);
  return rate.gt_per_s * rate.lanes * coded_share(rate.gt_per_s) / 8;
}

double nccl_nvlink_gb_per_s(int compute_capability) {
  if (compute_capability >= 100) return 40.1;
  if (compute_capability >= 90) return 20.6;
  if (compute_capability == 86) return 12;
  return compute_capability >= 60 && compute_capability < 70 ? 18 : 20;
}

double physical_nvlink_gb_per_s(int compute_capability) {
  if (compute_capability >= 100) return 50;  // B200: 18 links, 1800 GB/s both ways
  if (compute_capability == 89 || compute_capability < 60) return 0;
  if (compute_capability == 86) return 14.0625;  // A40: 4 links, 112.5 GB/s both ways
  return compute_capability >= 70 ? 25 : 20;     // V100, A100, H100: 6, 12, 18 links; P100
}

double rccl_xgmi_gb_per_s(std::string_view gcn) {
  const std::string_view name = gcn_name(gcn);
  if (name.starts_with("gfx90a")) return 36;
  return name.starts_with("gfx94") ? 48 : 24;
}

double physical_xgmi_gb_per_s(std::string_view gcn) {
  const std::string_view name = gcn_name(gcn);
  if (name.starts_with("gfx94")) return 64;   // MI300X: 7 links, 896 GB/s both ways
  if (name.starts_with("gfx90a")) return 50;  // MI250X: 8 links, 800 GB/s both ways
  // MI60: 2 links, 184 GB/s; MI100: 3 links, 276 GB/s, both ways
  return name.starts_with("gfx906") || name.starts_with("gfx908") ? 46 : 0;
}

CpuVendor cpu_vendor(const NumaNodeInfo& node) {
  if (node.architecture == "arm64" || node.architecture == "aarch64") return CpuVendor::kArm;
  if (node.architecture.starts_with("ppc64")) return CpuVendor::kPower;
  if (node.architecture != "x86_64") return CpuVendor::kUnknown;
  if (node.vendor == "GenuineIntel") return CpuVendor::kIntel;
  if (node.vendor == "AuthenticAMD") return CpuVendor::kAmd;
  const bool zhaoxin = node.vendor == "CentaurHauls" || node.vendor == "  Shanghai  ";
  return zhaoxin ? CpuVendor::kZhaoxin : CpuVendor::kUnknown;
}

double nccl_inter_numa_gb_per_s(const NumaNodeInfo& node) {
  const int model = node.model.value_or(0);
  const int family = node.family.value_or(6);
  switch (cpu_vendor(node)) {
    case CpuVendor::kPower:
      return 32;  // POWER9
    case CpuVendor::kArm:
      return 6;
    case CpuVendor::kAmd:
      return 16;
    case CpuVendor::kZhaoxin:
      return family == 7 && model == 0x5B ? 9 : 6;  // Yongfeng
    case CpuVendor::kIntel:
      if (family != 6) return 6;
      if (model >= 0xCF) return 40;   // Emerald Rapids
      if (model >= 0x8F) return 22;   // Sapphire Rapids
      return model >= 0x55 ? 10 : 6;  // Skylake; Broadwell
    case CpuVendor::kUnknown:
      break;
  }
  return kNcclLocalGbPerS;
}

double nccl_port_gb_per_s(double mbit_per_s) {
  return (mbit_per_s > 0 ? mbit_per_s : kNcclUnknownPortMbitPerS) / 8000;
}

int broadcom_generation(const PciIdentity& identity, SwitchLevel level) {
  if (from_hexadecimal(identity.vendor) != 0x1000 ||
      from_hexadecimal(identity.subsystem_vendor) != 0x1000)
    return 0;
  const uint64_t device = from_hexadecimal(identity.device);
  const uint64_t series = from_hexadecimal(identity.subsystem_device) >> 12;
  if (device == 0xc010) return series == 0xa ? 4 : 0;
  return device == 0xc030 && series == (level == SwitchLevel::kUpper ? 0 : 1) ? 5 : 0;
}

}  // namespace gxp
