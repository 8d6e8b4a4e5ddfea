// A topology as a tree of text, for people.
#pragma once

#include <string>

#include "lib/topo/read/topology.h"

namespace gxp {

// A line for each NUMA node, switch and device, indented by what it lies below. A bridge with one
// part below it has no line: the part says how many it lies behind. Then the links beside the tree,
// those that are alike as one; what is absent; the notes.
std::string tree_text(const HostTree& host);

// Hosts that are alike once; then the switches with the hosts below them.
std::string tree_text(const Topology& topology);

}  // namespace gxp
