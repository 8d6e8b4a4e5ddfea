// Hosts without a topology source: common machines and test shapes by name, and regular hosts by a
// few numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gxp {

class HostTree;

struct SyntheticName {
  std::string_view name;  // "dgx-h100", "ring:N"
  std::string_view summary;
};

// In the order of lists.
std::span<const SyntheticName> synthetic_names();
// Whether this is the name of a machine, or of a shape with any numbers.
bool is_synthetic(std::string_view name);
// Bus ids and names of NICs are made up; the notes say so. Precondition: is_synthetic(name).
// kUsage: a number is out of its range.
HostTree make_synthetic(const std::string& name);

// A regular host. There are as many PCIe switches as NICs, and at least one per NUMA node; GPUs and
// NICs are spread over the switches in order, and the switches over the NUMA nodes. Neighbouring
// GPUs therefore share a switch with their nearest NIC.
struct HostDescription {
  int gpus = 1;
  int nics = 0;
  int numa_nodes = 1;
  double pcie_gb_per_s = 0;    // of each PCIe link, which is shown as transfers on 16 lanes
  double nvlink_gb_per_s = 0;  // of each GPU to the NVSwitch; 0: there is none
};

// Precondition: at least one GPU and one NUMA node; bandwidths > 0 where links need them.
HostTree make_regular_host(const HostDescription& description);

}  // namespace gxp
