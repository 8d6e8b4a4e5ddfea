// Reads the file that describes a cluster: TOML, see docs/FORMAT.md.
//   Limits  kMaxClusterFileBytes, 256 groups of hosts; those of cluster.h and sources.h, the latter
//           for all topologies together.
//   Errors  kConfig: all that is wrong with the keys, one line each, "FILE:LINE: hosts.gpus is 0;
//           must be from 1 to 256"; of the file and the topologies that it names those of
//           sources.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tools/topology/model/cluster.h"

namespace gxp {

class HostTree;
struct Topology;

inline constexpr size_t kMaxClusterFileBytes = 1u << 20;

ClusterDescription load_cluster(const std::string& path);
// The same file as a topology: a tree for each group of hosts, whose names are "GROUP 0", counted
// through the cluster, and the switches. Bandwidths of PCIe are shown as transfers on 16 lanes.
Topology parse_cluster_topology(std::string_view text, const std::string& path);
// The hosts and switches of a cluster, with the trees of its groups, or with none. With rails, leaf
// switches are one for each NIC of a host. kConfig: the limits of Topology.
Topology topology_of(const ClusterDescription& cluster,
                     std::vector<std::shared_ptr<HostTree>> trees);
// `path` is for messages; topology files are looked for in its folder.
ClusterDescription parse_cluster(std::string_view text, const std::string& path);

}  // namespace gxp
