// Which attribute of NCCL's XML is which field of a part: one table an element, for reading and
// writing.
#pragma once

#include <array>
#include <string_view>

#include "lib/tools/topology/read/xml_fields.h"
#include "lib/topo/model/part.h"

namespace gxp {

inline constexpr std::array<XmlField<NumaNodeInfo>, 7> kCpuFields = {{
    {"host_hash", &NumaNodeInfo::host_hash},
    {"numaid", &NumaNodeInfo::number, {-1, 1 << 20}},
    {"affinity", &NumaNodeInfo::affinity},
    {"arch", &NumaNodeInfo::architecture},
    {"vendor", &NumaNodeInfo::vendor},
    {"familyid", &NumaNodeInfo::family},
    {"modelid", &NumaNodeInfo::model},
}};
inline constexpr std::array<XmlField<PciIdentity>, 5> kPciFields = {{
    {"class", &PciIdentity::class_code},
    {"vendor", &PciIdentity::vendor},
    {"device", &PciIdentity::device},
    {"subsystem_vendor", &PciIdentity::subsystem_vendor},
    {"subsystem_device", &PciIdentity::subsystem_device},
}};
inline constexpr std::array<XmlField<GpuInfo>, 5> kGpuFields = {{
    {"dev", &GpuInfo::number, {0, 1 << 20}},
    {"sm", &GpuInfo::compute_capability, {0, 1000}},
    {"gcn", &GpuInfo::gcn},
    {"rank", &GpuInfo::rank, {-1, 1 << 30}},
    {"gdr", &GpuInfo::gpu_direct, {0, 1}},
}};
inline constexpr std::array<XmlField<PortInfo>, 8> kNetFields = {{
    {"name", &PortInfo::name},
    {"dev", &PortInfo::number, {0, 1 << 20}},
    {"speed", &PortInfo::mbit_per_s, {-1, 1e9}},
    {"port", &PortInfo::port, {-1, 1 << 20}},
    {"latency", &PortInfo::latency_us, {0, 1e9}},
    {"guid", &PortInfo::guid},
    {"maxconn", &PortInfo::max_connections},
    {"gdr", &PortInfo::gpu_direct, {0, 1}},
}};
struct LinkElement {
  std::string_view element;
  CrossLinkKind kind;
};

inline constexpr std::array<LinkElement, 4> kLinkElements = {{{"nvlink", CrossLinkKind::kNvLink},
                                                              {"xgmi", CrossLinkKind::kXgmi},
                                                              {"c2c", CrossLinkKind::kChipToChip},
                                                              {"pcilink", CrossLinkKind::kPcie}}};

// Attributes that NCCL or RCCL know and gxp has no field for. No others share these names.
inline constexpr std::array<std::string_view, 10> kKeptAttributes = {
    "name", "arch", "mlopart", "coll", "rail", "plane", "net", "gin", "rma", "keep"};

}  // namespace gxp
