// The picture of a topology: of one host that host; of a cluster its switches over its hosts, what
// is alike once, and below that what is in the hosts.
#pragma once

#include "lib/inspect/view/picture.h"
#include "lib/topo/read/topology.h"

namespace gxp {

Picture draw_topology(const Topology& topology);

}  // namespace gxp
