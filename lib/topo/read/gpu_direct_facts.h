// What a host's files say of GPUDirect RDMA: the GPU's driver, Linux and its modules.
#pragma once

#include "lib/topo/model/gpu_direct.h"
#include "lib/topo/read/system_root.h"

namespace gxp {

GpuDirectFacts read_gpu_direct_facts(const SystemRoot& root);

}  // namespace gxp
