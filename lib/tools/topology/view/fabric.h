// The switches of a cluster and the hosts below them, as a person would draw them: equal ones once,
// with their number.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/tools/topology/read/topology.h"

namespace gxp {

struct FabricNode {
  bool is_hosts = false;             // else switches
  std::vector<std::string> names{};  // of all switches or hosts in it
  size_t below_each = 1;             // how many of them are below each one of the node above
  size_t rails = 1;                  // switches that share their hosts, each for one NIC of a host
  double uplink_gb_per_s = 0;        // of one switch, or of all NICs of one host; 0: unknown
  size_t tree = kNoTree;             // of hosts
  std::vector<FabricNode> below{};
};

// From the top. Equal switches are one node only where there would be more than eight boxes in a
// row. Hosts without a switch come last. Switches in a circle, or deeper than 64, are left out.
std::vector<FabricNode> make_fabric(const Topology& topology);

// The switches and hosts below each switch, by its index.
struct SwitchTree {
  explicit SwitchTree(const Topology& topology);
  std::vector<size_t> roots;
  std::vector<std::vector<size_t>> below;  // switches
  std::vector<std::vector<size_t>> hosts;
};

// The hosts that have that tree, by name.
std::vector<std::string> names_of_hosts(const Topology& topology, size_t tree);

}  // namespace gxp
