// The RDMA ports that a rank uses, by the wiring of its host: those that NCCL gives its GPU, or for
// a rank without a GPU those at the NUMA node of its CPUs. Ports that are down are passed over.
#pragma once

#include <string>
#include <vector>

#include "lib/topo/model/cpu_set.h"
#include "lib/topo/nccl/nccl_routes.h"

namespace gxp {

struct RankPorts {
  std::vector<PartId> ports{};  // the best first; empty: the wiring decides nothing
  std::string why{};            // "nearest to GPU0: PIX", or why it decides nothing
};

RankPorts ports_of_gpu(const NcclRoutes& routes, PartId gpu);
// For a process that may run on these CPUs.
RankPorts ports_of_cpus(const HostTree& host, const CpuSet& cpus);

}  // namespace gxp
