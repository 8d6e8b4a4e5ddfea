// Regular hosts as the simulator takes them, for tests.
#pragma once

#include "lib/tools/topology/model/synthetic.h"
#include "lib/tools/topology/nccl/host_of_tree.h"

namespace gxp {

struct RegularHost {
  int gpus = 1;
  int nics = 0;
  int numa_nodes = 1;
  double pcie_gb_per_s = 0;
  double nvlink_gb_per_s = 0;
  double inter_numa_gb_per_s = 0;
  LinkLatencies latencies{};
};

inline HostTopology make_host(const RegularHost& host) {
  const HostTree tree = make_regular_host({.gpus = host.gpus,
                                           .nics = host.nics,
                                           .numa_nodes = host.numa_nodes,
                                           .pcie_gb_per_s = host.pcie_gb_per_s,
                                           .nvlink_gb_per_s = host.nvlink_gb_per_s});
  return host_topology_of(tree, host.latencies, host.inter_numa_gb_per_s);
}

}  // namespace gxp
