// The routes that NCCL takes through a host, for plans.
#pragma once

#include <vector>

#include "lib/topo/model/host_routes.h"
#include "lib/topo/nccl/nccl_routes.h"

namespace gxp {

// The parts that are a plan's places: GPUs by number where all have one, else in NCCL's order, and
// behind them NCCL's ports.
std::vector<PartId> places_of_plan(const NcclPaths& paths);

// Each link as NCCL models it; a port's link to its NIC has the speed of the network.
// kConfig: the host has no GPU.
HostRoutes nccl_host_routes(const NcclPaths& paths, const NcclRoutes& routes);

}  // namespace gxp
