// Which RDMA ports of its host a rank uses: as `gxp topo` gives them to its GPU or to the CPUs that
// it may run on.
#pragma once

#include <string>

#include "lib/device/device.h"
#include "lib/topo/read/system_root.h"
#include "lib/transport/verbs/verbs_ports.h"

namespace gxp {

class HostTree;

// `gpu_bus_id`: of the GPU that the rank computes on; "": it computes on none. `host` is read from
// `root`.
VerbsPlace place_by_wiring(const SystemRoot& root, const HostTree& host,
                           const std::string& gpu_bus_id);

// For this process, which computes on `gpu`; null: on none. If the host cannot be examined, it
// gives the reason. Cost: that of looking at the host, some 10 ms; with a GPU its driver is asked,
// too.
VerbsPlace place_on_this_host(const Device* gpu);

}  // namespace gxp
