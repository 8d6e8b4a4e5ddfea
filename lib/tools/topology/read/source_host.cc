#include "lib/tools/topology/read/source_host.h"

#include <filesystem>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"
#include "lib/topo/read/sysfs_host.h"

namespace gxp {

HostTree read_recorded_root(const SystemRoot& root, const std::string& path) {
  HostTree host = read_system(root);
  // hwloc-gather-topology writes "HostName: cfarm107" here.
  const std::string info = root.read("/proc/hwloc-nofile-info").value_or("");
  if (host.name.empty()) host.name = value_behind(info, "HostName: ");
  if (host.name.empty()) host.name = std::filesystem::path(path).filename();
  host.source = "recorded /proc and /sys, " + path;
  if (!host.all_of(PartKind::kGpu).empty()) {
    host.absent.push_back(
        "no driver in a recorded root: GPUs have no number, memory size or NVLinks");
  }
  return host;
}

}  // namespace gxp
