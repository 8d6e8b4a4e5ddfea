// The switches of a cluster and the hosts below them, as a person would draw them: what is alike
// once, with how often it is there.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/topo/read/topology.h"

namespace gxp {

struct FabricNode {
  bool is_hosts = false;             // else switches
  std::vector<std::string> names{};  // of all that it stands for
  size_t below_each = 1;             // how many of them are below one of the node above
  size_t rails = 1;                  // switches that share their hosts, each for one NIC of a host
  double uplink_gb_per_s = 0;        // of each; of hosts: all NICs; 0: unknown
  size_t tree = kNoTree;             // of hosts
  std::vector<FabricNode> below{};
};

// From the top. Switches that are alike are one only where boxes side by side would be more than
// eight. Hosts of no switch come last. Switches that lie below each other in a circle, or
// deeper than 64, are left out.
std::vector<FabricNode> make_fabric(const Topology& topology);

// What is below each switch, by its index.
struct SwitchTree {
  explicit SwitchTree(const Topology& topology);
  std::vector<size_t> roots;
  std::vector<std::vector<size_t>> below;  // switches
  std::vector<std::vector<size_t>> hosts;
};

// The hosts that have that tree, by name.
std::vector<std::string> names_of_hosts(const Topology& topology, size_t tree);

// The bandwidth of all ports of a host; 0: none is known.
double network_gb_per_s(const HostTree& host);

}  // namespace gxp
