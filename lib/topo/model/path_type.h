// How far two devices are apart, in NCCL's words and order: a smaller one is nearer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/base/enum_names.h"

namespace gxp {

enum class PathType : uint8_t {
  kLoc,  // the same device
  kNvl,  // NVLinks, also through NVSwitches
  kNvb,  // NVLinks through one other GPU
  kC2c,  // a chip-to-chip link between GPU and NUMA node
  kPix,  // one PCIe switch
  kPxb,  // several PCIe switches, no NUMA node
  kP2c,  // PCIe and a chip-to-chip link
  kPxn,  // NVLink to another GPU, PCIe from there to a NIC
  kPhb,  // PCIe through a NUMA node
  kSys,  // several NUMA nodes
  kNet,  // the network
  kDis,  // no way
};

inline constexpr std::array<std::string_view, 12> kPathTypeNames = {
    "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
inline std::string_view to_string(PathType type) { return kPathTypeNames[size_t(type)]; }
inline std::optional<PathType> parse_path_type(std::string_view name) {  // in capitals
  return find_enumerator<PathType>(kPathTypeNames, name);
}

}  // namespace gxp
