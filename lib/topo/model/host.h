// The inside of one host: its hardware graph, the GPUs in the order of their numbers, the NICs, and
// which NIC a GPU uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/topo/model/graph.h"

namespace gxp {

struct Nic {
  VertexId vertex = 0;
  double gb_per_s = 0;  // to and from the network, each; 0: not known
};

struct HostTopology {
  HardwareGraph graph;
  std::vector<VertexId> gpus;
  std::vector<Nic> nics;
  std::vector<std::string> notes;  // what its source did not say or said wrongly: a sentence each
  [[nodiscard]] std::vector<VertexId> nic_vertices() const;
};

// The latency of one link, by kind; no source of topologies says it.
struct LinkLatencies {
  double pcie_s = 0;
  double nvlink_s = 0;      // also chip to chip
  double inter_numa_s = 0;  // between NUMA nodes
};

// The group that thing i of `count` falls into, if they are spread evenly over `groups`.
inline int group_of(int i, int count, int groups) { return int(int64_t{i} * groups / count); }

// A regular host, to be synthesised.
struct HostDescription {
  int gpus = 1;
  int nics = 0;
  int numa_nodes = 1;
  double pcie_gb_per_s = 0;        // of each PCIe link
  double nvlink_gb_per_s = 0;      // of each GPU to the NVSwitch; 0: there is none
  double inter_numa_gb_per_s = 0;  // > 0 where there are several NUMA nodes
  LinkLatencies latencies;
};

// There are as many PCIe switches as NICs, and at least one per NUMA node; GPUs and NICs are spread
// over them in order, and they over the NUMA nodes, every pair of which is joined. So neighbouring
// GPUs share a switch with the NIC nearest to them.
// Precondition: at least one GPU and one NUMA node; bandwidths > 0 where links need them.
HostTopology make_host(const HostDescription& description);

// For each GPU the NIC that is nearest: reached by the widest path, then by the fewest links, then
// used by the fewest GPUs so far, then the first. Empty without NICs.
std::vector<int> nearest_nics(const HostTopology& host);

}  // namespace gxp
