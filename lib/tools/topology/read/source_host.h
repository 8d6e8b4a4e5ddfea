// Hosts by /proc and /sys (sysfs_host.h) as hwloc-gather-topology recorded them in a directory. A
// recording lacks what only a driver knows: the GPUs' numbers, memory and NVLinks.
#pragma once

#include <string>

#include "lib/topo/read/system_root.h"

namespace gxp {

class HostTree;

// `path` is for its name where the recording has none.
HostTree read_recorded_root(const SystemRoot& root, const std::string& path);

}  // namespace gxp
