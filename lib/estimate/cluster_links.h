// The links of a cluster (lib/topo/model/cluster.h) as a step's time depends on them. Pure.
#pragma once

#include "lib/estimate/hardware.h"
#include "lib/topo/model/cluster.h"

namespace gxp {

// A GPU's narrowest link on the way to the next GPU of its host, and to the next host's; NICs that
// GPUs share, and trunks that are oversubscribed, are divided. A domain is a host of the first
// group.
Links links_of(const Cluster& cluster);

}  // namespace gxp
