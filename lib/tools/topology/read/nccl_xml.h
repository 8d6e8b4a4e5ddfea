// NCCL's topology XML (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE; <system version="1">) and RCCL's
// (version="2"): elements cpu (a NUMA node), pci, gpu, nvlink or xgmi, c2c, nic, net, pcilink.
//
// The tree keeps all that the file says, also what NCCL ignores: devices without a rank or a
// number, two of the same bus id, unknown attributes and elements. The tree's notes name unknown
// ones, and numbers that cannot be meant, with their place.
//   A <pci> with a <gpu> is the GPU, with a <nic> the NIC, and the <net>s are its ports; a second
//   <gpu> or <nic> in it is a part below, without a bus id. A <pci> with neither is what its class
//   says, or a switch if others are below it.
//   link_speed and link_width are PcieLink::now, whatever they were taken from.
//   Limits  those of xml_text.h and host_tree.h; kMaxPciDepth.
//   Errors  kCorrupt, as xml_text.h: no XML, another element or version, a <pci> without busid, an
//           attribute that must be a number and is none.
// Source: src/graph/xml.cc and topo.cc of NCCL 2.30 and of RCCL.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

class HostTree;

inline constexpr int kMaxPciDepth = 32;

// `name` is the file's, for messages.
HostTree read_nccl_xml(std::string_view text, const std::string& name);

// Writes the file that the tree was read from (the same elements, attributes and order), or one
// that NCCL understands. Host bridges, which NCCL does not know, are left out and their parts
// written; switches without a bus id get one that no device has ("ffff:ff:01.0"), as clouds do.
// kConfig: a GPU or NIC on PCIe has no bus id, by which NCCL knows it.
std::string write_nccl_xml(const HostTree& host);

}  // namespace gxp
