// The topology of a virtual machine for NCCL_TOPO_FILE. A VM shows its GPUs and NICs with other bus
// ids and without the bridges and NUMA nodes between them, so NCCL takes all devices for far apart.
//
// It is the bare-metal host's tree, in which the VM's devices replace the machine's:
//   Devices   each GPU and NIC of the one is one of the other, by a serial number, a guid or a name
//             that all of a kind have, else by the order of their bus ids. What NCCL knows of it
//             (rank, ports, NVLinks) is the VM's.
//   Bridges   have bus ids that no device has, ffff:ff:01.0 and on, as clouds write them.
//   CPUs      the VM's, of NUMA nodes of the same number; without such all of the VM's.
//   Proof     between any two devices NCCL finds the path type that it finds on the bare-metal
//             host.
//   Errors    kMismatch: the two have not as many devices of a kind, or not the same models; some
//             of a kind could be one or another; a path type would differ.
#pragma once

#include <string>
#include <vector>

#include "lib/topo/model/host_tree.h"

namespace gxp {

struct DeviceMatch {
  PartId bare = kNoPart;
  PartId vm = kNoPart;
  std::string why;  // "by the guid of its port"
};

struct VmTopology {
  HostTree host;
  std::vector<DeviceMatch> matches;
  size_t equal_pairs = 0;          // of devices, whose path types were compared
  std::vector<std::string> notes;  // a sentence each
};

VmTopology make_vm_topology(const HostTree& bare, const HostTree& vm);

}  // namespace gxp
