// Reads NCCL's topology XML (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE; <system version="1">).
//
// Taken: cpu (a NUMA node), pci (switch, GPU, NIC, other), gpu, nvlink, c2c, nic, net. All nvlinks
// to switches lead to one NVSwitch. Bandwidths follow NCCL's constants (graph/topo.h of NCCL 2.30):
//   PCIe         width * GT/s * 0.75 / 8 GB/s: 16 lanes of 8 GT/s are 12 GB/s.
//   NVLink       per link by compute capability: sm60 18, sm70 and sm80 20, sm86 12, sm90 20.6,
//                sm100 40.1 GB/s.
//   Inter-NUMA   by vendor and model; every pair of nodes is joined.
//   net          speed / 8000, speed in Mbit/s.
// Unlike NCCL, a link_speed is read as a number: "32.0 GT/s" without " PCIe" is 32, not 8.
// Differences of a file from what such files say (no class, no speed, an NVLink to itself) are
// notes.
//   Limits  kMaxXmlBytes, kMaxXmlDepth, the limits of the graph.
//   Errors  kIo: unreadable; kCorrupt, naming file, line and attribute.
#pragma once

#include <string>
#include <string_view>

#include "lib/topo/host.h"

namespace gxp {

inline constexpr size_t kMaxXmlBytes = 16u << 20;
inline constexpr int kMaxXmlDepth = 32;

// GPUs are ordered by `dev` where all have one, NICs as the file has them; a NIC's ports are added
// up. `name` is the file's, for messages.
HostTopology parse_nccl_topology(std::string_view text, const std::string& name,
                                 const LinkLatencies& latencies);
HostTopology load_nccl_topology(const std::string& path, const LinkLatencies& latencies);

}  // namespace gxp
