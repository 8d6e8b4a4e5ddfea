// A cluster that was described for the simulator (cluster.h), as hosts, trees and switches.
#pragma once

#include <vector>

#include "lib/topo/model/cluster.h"
#include "lib/topo/read/topology.h"

namespace gxp {

// What make_host() makes, as a tree. Bandwidths of PCIe are transfers on 16 lanes; those between
// NUMA nodes have no place in it.
HostTree make_host_tree(const HostDescription& description);

// `trees` are those of the groups. With rails, leaf switches are one for each NIC of a host.
// kConfig: the limits of Topology.
Topology topology_of(const ClusterDescription& cluster, std::vector<HostTree> trees);

}  // namespace gxp
