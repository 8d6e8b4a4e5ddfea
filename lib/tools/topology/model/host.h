// The inside of one host: its hardware graph, the GPUs in the order of their numbers, the NICs, and
// which NIC a GPU uses.
#pragma once

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
  std::vector<std::string> notes;  // on gaps and errors in its source: one sentence each
};

// The latency of one link, by kind; no source of topologies says it.
struct LinkLatencies {
  double pcie_s = 0;
  double nvlink_s = 0;      // also chip to chip
  double inter_numa_s = 0;  // between NUMA nodes
};

// The nearest NIC of each GPU: the one with the widest path, then with the fewest links, then with
// the fewest GPUs so far, then the first. Empty without NICs.
std::vector<int> nearest_nics(const HostTopology& host);

}  // namespace gxp
