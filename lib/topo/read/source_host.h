// Hosts by their /proc and /sys (sysfs_host.h): the one that gxp runs on, with the facts of the
// GPUs' driver, and hosts that hwloc-gather-topology recorded as a directory. A recording
// lacks what only a driver knows: the GPUs' numbers, memory and NVLinks.
#pragma once

#include <string>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/system_root.h"

namespace gxp {

// HostTree::absent says what the host lacks. kUnavailable: there is no /sys.
HostTree probe_host();

// `path` is for its name where the recording has none.
HostTree read_recorded_root(const SystemRoot& root, const std::string& path);

}  // namespace gxp
