#include "lib/topo/read/sysfs_host.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

bool linux_is_at_least(const SystemRoot& root, int major, int minor) {
  const std::string release = root.read("/proc/sys/kernel/osrelease").value_or("");
  int has_major = 0, has_minor = 0;
  std::sscanf(release.c_str(), "%d.%d", &has_major, &has_minor);
  return std::pair(has_major, has_minor) >= std::pair(major, minor);
}

bool any_link_speed(const HostTree& host) {
  return std::ranges::any_of(host.parts(), [](const Part& part) {
    return part.link.now.gt_per_s > 0 || part.link.most.gt_per_s > 0;
  });
}

bool any_bus_id(const HostTree& host) {
  return std::ranges::any_of(host.parts(), [](const Part& part) { return !part.bus_id.empty(); });
}

void say_what_is_absent(HostTree& host, const SystemRoot& root) {
  if (host.all_of(PartKind::kGpu).empty())
    host.absent.push_back("no GPUs on PCIe: rings and trees need some");
  if (any_bus_id(host) && !any_link_speed(host)) {
    host.absent.push_back(
        "no PCIe link speeds (a virtual machine's devices, or Linux before 4.13): paths over PCIe "
        "have no bandwidth of their own");
  }
  if (root.list("/sys/class/infiniband").empty()) {
    host.absent.push_back(
        "no RDMA devices (/sys/class/infiniband): hosts reach each other by TCP only, without "
        "GPUDirect");
  }
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

HostTree read_system(const SystemRoot& root) {
  HostTree host;
  host.name = root.read("/proc/sys/kernel/hostname").value_or("");
  add_numa_nodes(host, root);
  add_pci_devices(host, root);
  add_network_ports(host, root);
  host.gpu_direct = read_gpu_direct_facts(root);
  say_what_is_absent(host, root);
  return host;
}

}  // namespace gxp
