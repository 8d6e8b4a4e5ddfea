// A host by the /proc and /sys under a root, as a HostTree: NUMA nodes with their CPUs and
// caches, PCIe from its roots to GPUs and NICs, network interfaces and RDMA devices with their
// ports. The same for the host that gxp runs on and for one that was recorded.
//   Places    a PCIe root lies below the NUMA node that Linux names; where it names none,
//             below the lowest node whose CPUs are local to it, and a note says so.
//   Ports     an RDMA device has one for each of its ports; a network interface that belongs to
//             none has one; interfaces without a device (loopback, bridges) have none.
//   CPUs      family and model as NCCL writes them: the family's extension counts sixteenfold.
//   Absent    a sentence for each missing device or fact, with its effect.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/topo/model/gpu_direct.h"
#include "lib/topo/model/part_id.h"
#include "lib/topo/read/system_root.h"

namespace gxp {

class HostTree;

// What a host's files say of GPUDirect RDMA: the GPU's driver, Linux and its modules.
GpuDirectFacts read_gpu_direct_facts(const SystemRoot& root);

// kUnavailable: it has neither CPUs nor NUMA nodes below /sys/devices/system.
HostTree read_system(const SystemRoot& root);

// The steps of read_system(); each adds to `host`.
void add_numa_nodes(HostTree& host, const SystemRoot& root);
void add_pci_devices(HostTree& host, const SystemRoot& root);
// Below the existing NICs; after add_pci_devices().
void add_network_ports(HostTree& host, const SystemRoot& root);

// The last bus id in a path of devices, which is that of the PCIe function above it; "": none.
std::string bus_id_in(std::string_view path);
// Bus ids of functions with a network interface or an RDMA device.
std::vector<std::string> network_functions(const SystemRoot& root);
// The NUMA node with that number, or kNoPart.
PartId find_numa_node(const HostTree& host, long number);

}  // namespace gxp
