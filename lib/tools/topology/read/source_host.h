// Hosts by /proc and /sys (sysfs_host.h) as hwloc-gather-topology recorded them, as a directory or
// a tar of one. A recording lacks what only a driver knows: the GPUs' numbers, memory and NVLinks.
#pragma once

#include <memory>
#include <string>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/system_root.h"

namespace gxp {

inline constexpr size_t kMaxArchiveFileBytes = 64u << 20;

// Errors as of open_recorded_directory(), read_text_file() and parse_system_archive().
std::unique_ptr<SystemRoot> open_recorded_root(const std::string& path);
// `path` is for its name where the recording has none.
HostTree read_recorded_root(const SystemRoot& root, const std::string& path);

}  // namespace gxp
