#include "lib/topo/read/live_host.h"

#include "lib/base/error.h"
#include "lib/base/host_name.h"
#include "lib/topo/model/host_tree.h"
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
        std::string("no NVIDIA driver: GPUs appear as PCIe devices, without NVLinks (") +
        error.what() + ")");
  }
  return host;
}

}  // namespace gxp
