// Reads hwloc's XML (lstopo --of xml; HWLOC_XMLFILE) of versions 1 to 3, without hwloc.
//
// Taken: NUMA nodes with the cores, threads and caches of their CPUs; PCIe below its host bridges
// (pci_tree.h); network, RDMA and GPU devices; the matrices NVLinkBandwidth and XGMIBandwidth.
//   Links   hwloc says GB/s as they were when it looked, and not how many lanes they are of; the
//           lanes shown are the most, up to 16, that make it. An idle GPU's link may be slow.
//   Notes   objects of types that are not known; a host bridge that is near several NUMA nodes;
//           threads that are of no node.
//   Limits  those of xml_text.h, kMaxHwlocDepth.
//   Errors  kCorrupt, with file, line and column.
#pragma once

#include <string>
#include <string_view>

#include "lib/topo/model/host_tree.h"

namespace gxp {

inline constexpr int kMaxHwlocDepth = 64;

HostTree read_hwloc_xml(std::string_view text, const std::string& name);

// Rate and lanes of a PCIe link of that many GB/s after its line code; unknown if none has it.
PcieRate pcie_rate_of(double gb_per_s);

}  // namespace gxp
