// The numbers and kinds of a host's parts, and the kinds of links across its tree; part.h has the
// facts about them.
#pragma once

#include <cstdint>
#include <string_view>

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

using PartId = uint32_t;  // index into HostTree::parts()
inline constexpr PartId kNoPart = ~PartId{0};

enum class CrossLinkKind : uint8_t {
  kNvLink,
  kXgmi,
  kChipToChip,  // between a GPU and its NUMA node
  kPcie,        // between two bridges (NCCL's pcilink)
};

std::string_view to_string(CrossLinkKind kind);  // "NVLink"

}  // namespace gxp
