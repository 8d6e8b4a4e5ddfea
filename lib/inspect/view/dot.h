// A topology for Graphviz (dot -Tsvg): the same boxes and links as in the picture, placed by
// Graphviz.
#pragma once

#include <string>

#include "lib/topo/read/topology.h"

namespace gxp {

std::string to_dot(const Topology& topology);

}  // namespace gxp
