// Hosts by their /proc and /sys (sysfs_host.h): the one that gxp runs on, with what the GPUs' driver
// tells, and hosts that were recorded, as hwloc-gather-topology does: a directory, or a tar of one.
// Of a recorded host's GPUs the numbers, memory and NVLinks are not known, which only a driver tells.
#pragma once

#include <memory>
#include <string>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/system_root.h"

namespace gxp {

inline constexpr size_t kMaxArchiveFileBytes = 64u << 20;

// HostTree::absent says what the host lacks. kUnavailable: there is no /sys.
HostTree probe_host();

// Errors as of open_recorded_directory(), read_text_file() and parse_system_archive().
std::unique_ptr<SystemRoot> open_recorded_root(const std::string& path);
// `path` is for its name where the recording has none.
HostTree read_recorded_root(const SystemRoot& root, const std::string& path);

}  // namespace gxp
