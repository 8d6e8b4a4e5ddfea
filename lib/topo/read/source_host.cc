#include "lib/topo/read/source_host.h"

#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/host_name.h"
#include "lib/topo/model/text_parts.h"
#include "lib/topo/read/nvml.h"
#include "lib/topo/read/sysfs_host.h"

namespace gxp {

HostTree probe_host() {
  HostTree host = read_system(*live_root());
  host.name = host_name();
  host.source = "this host";
  try {
    add_nvml(host, read_nvml());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnavailable) throw;
    host.absent.push_back(
        std::string("no NVIDIA driver: GPUs that are there are shown as the PCIe devices that they "
                    "are, without NVLinks (") +
        error.what() + ")");
  }
  return host;
}

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
