// The routes that NCCL takes through a host, for plans.
#pragma once

#include <vector>

#include "lib/tools/topology/model/host_routes.h"
#include "lib/topo/nccl/nccl_routes.h"

namespace gxp {

// The parts that are the places of a plan: GPUs by number where all have one, else in NCCL's order,
// then NCCL's ports.
std::vector<PartId> places_of_plan(const NcclPaths& paths);

// Links have the bandwidths of NCCL's model; a port's link to its NIC has the port's speed.
// kConfig: the host has no GPU.
HostRoutes nccl_host_routes(const NcclPaths& paths, const NcclRoutes& routes);

}  // namespace gxp
