#include "tests/tools/topology/regular_host.h"

#include "lib/tools/topology/model/synthetic.h"
#include "lib/tools/topology/nccl/host_of_tree.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {

HostTopology make_host(const RegularHost& host) {
  const HostTree tree = make_regular_host({.gpus = host.gpus,
                                           .nics = host.nics,
                                           .numa_nodes = host.numa_nodes,
                                           .pcie_gb_per_s = host.pcie_gb_per_s,
                                           .nvlink_gb_per_s = host.nvlink_gb_per_s});
  return host_topology_of(tree, host.latencies, host.inter_numa_gb_per_s);
}

}  // namespace gxp
