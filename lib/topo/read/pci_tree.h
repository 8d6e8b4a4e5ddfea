// From the functions that Linux or hwloc lists below a PCIe root to the parts of a HostTree, as
// NCCL would see them.
//   Parts     GPUs, NICs, NVSwitches, storage, accelerators, and the bridges that lead to them.
//   Bridges   a switch has an upstream bridge and, below it, a downstream bridge for each link; a
//             root port is a bridge, too. As in NCCL, a switch is one part: its upstream bridge.
//             So, from a device upwards, every second bridge is a part.
//   Links     a link's highest rate is the lower one of its two ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/topo/model/part.h"

namespace gxp {

class HostTree;

struct PciFunction {
  int above = -1;  // index of the bridge above, which comes before it; -1: none
  Part part{};     // bus id, identity, this end of the link; kind and info are set here
  std::string driver{};
  bool has_network = false;  // an interface or an RDMA device
};

struct PciRoot {
  std::string name{};  // "0000:3a": domain and bus
  PartId node = kNoPart;
  std::vector<PciFunction> functions{};
};

// "16.0 GT/s PCIe", "8 GT/s": 16, 8; 0 for anything else.
double parse_gt_per_s(std::string_view text);
// Whether it has the form of "0000:3b:00.0"; the domain may have up to eight digits.
bool is_bus_id(std::string_view text);
// The bus ids in a path of devices, from its root down.
std::vector<std::string> bus_ids_in(std::string_view path);
bool is_bridge(const PciIdentity& identity);

// The part of each function in `host`; kNoPart: it is not kept.
std::vector<PartId> add_pci_root(HostTree& host, const PciRoot& root);

}  // namespace gxp
