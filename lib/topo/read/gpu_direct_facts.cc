#include "lib/topo/read/gpu_direct_facts.h"

#include <cstdio>
#include <utility>

namespace gxp {
namespace {

bool linux_is_at_least(const SystemRoot& root, int major, int minor) {
  const std::string release = root.read("/proc/sys/kernel/osrelease").value_or("");
  int has_major = 0, has_minor = 0;
  std::sscanf(release.c_str(), "%d.%d", &has_major, &has_minor);
  return std::pair(has_major, has_minor) >= std::pair(major, minor);
}

}  // namespace

GpuDirectFacts read_gpu_direct_facts(const SystemRoot& root) {
  const std::string driver = root.read("/proc/driver/nvidia/version").value_or("");
  GpuDirectFacts facts{.modules_known = root.exists("/sys/module"),
                       .driver_is_open = driver.find("Open Kernel Module") != std::string::npos,
                       .linux_takes_dma_buf = linux_is_at_least(root, 5, 12)};
  for (const char* const module : {"nvidia_peermem", "nv_peer_mem"}) {
    if (facts.peer_module.empty() && root.exists(std::string("/sys/module/") + module))
      facts.peer_module = module;
  }
  facts.peer_module_registered =
      !facts.peer_module.empty() && !root.list("/sys/kernel/mm/memory_peers").empty();
  return facts;
}

}  // namespace gxp
