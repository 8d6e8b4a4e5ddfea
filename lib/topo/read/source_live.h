// The host that gxp runs on: /sys and /proc, and the GPUs' driver where there is one.
#pragma once

#include "lib/topo/model/host_tree.h"

namespace gxp {

// What a host lacks is told in HostTree::absent. kUnavailable: there is no /sys.
HostTree probe_host();

}  // namespace gxp
