// How a cluster file's GPUs are joined, as predictions take it.
#pragma once

#include "lib/replay/hardware.h"
#include "lib/tools/topology/model/cluster.h"

namespace gxp {

// The links of a cluster file: a GPU's narrowest link on the way to the next GPU of its host, and
// to the next host's. NICs that GPUs share, and trunks that are oversubscribed, are divided. A
// domain is a host of the first group.
Links links_of(const Cluster& cluster);

}  // namespace gxp
