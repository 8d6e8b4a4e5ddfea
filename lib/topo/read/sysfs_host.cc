#include "lib/topo/read/sysfs_host.h"

#include <algorithm>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/gpu_direct_facts.h"

namespace gxp {
namespace {

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
