// Reads hwloc's XML (lstopo --of xml; HWLOC_XMLFILE) of versions 1 to 3, without hwloc.
//
// The reader takes NUMA nodes with the cores, threads and caches of their CPUs; PCIe below its host
// bridges (pci_tree.h); network, RDMA and GPU devices; the matrices NVLinkBandwidth and
// XGMIBandwidth.
//   Links   hwloc gives the GB/s of a link at the time of its run, and no number of lanes; the tree
//           has the most lanes, up to 16, that give this rate. An idle GPU's link may be slow.
//   Notes   objects of unknown types; a host bridge that is near several NUMA nodes; threads that
//           belong to no node.
//   Limits  those of xml_text.h, kMaxHwlocDepth.
//   Errors  kCorrupt, with file, line and column.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

class HostTree;
struct PcieRate;

inline constexpr int kMaxHwlocDepth = 64;

HostTree read_hwloc_xml(std::string_view text, const std::string& name);

// Rate and lanes of a PCIe link of that many GB/s after its line code; unknown if none has it.
PcieRate pcie_rate_of(double gb_per_s);

}  // namespace gxp
