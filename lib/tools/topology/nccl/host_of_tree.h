// A host's tree as the graph that clusters are made of (host.h), for the simulator.
//
// Bandwidths are NCCL's (nccl_rules.h), but a PCIe speed is read as the number that it is: "32.0
// GT/s" is 32, where NCCL takes 8. All NVLinks to switches lead to one NVSwitch; every pair of NUMA
// nodes is joined. The notes of the tree also say what had to be assumed.
//   Errors  kCorrupt, with the place in the source: two parts of one bus id. kConfig: the limits of
//           the graph.
#pragma once

#include "lib/tools/topology/model/host.h"

namespace gxp {

class HostTree;

// GPUs are ordered by their numbers where all have one, NICs as the tree has them; the speeds of a
// NIC's ports are added up.
// inter_numa_gb_per_s: between any two NUMA nodes; 0: as NCCL has it for the processor.
HostTopology host_topology_of(const HostTree& tree, const LinkLatencies& latencies,
                              double inter_numa_gb_per_s = 0);

}  // namespace gxp
