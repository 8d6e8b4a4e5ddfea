// A topology as a tree of text, for people.
#pragma once

#include <string>

namespace gxp {

class HostTree;
struct Topology;

// A line for each NUMA node, switch and device, indented by its depth. A bridge with one part below
// it has no line: the part says how many bridges are above it. Then the cross links, equal ones in
// one line; what is absent; the notes.
std::string tree_text(const HostTree& host);

// A cluster's switches with the hosts below them, then each kind of hosts once.
std::string tree_text(const Topology& topology);

}  // namespace gxp
