// Which GPUs of this host the ranks of a job get, by the variables that the CUDA driver reads.
#pragma once

#include <string>
#include <vector>

#include "lib/base/environment.h"

namespace gxp {

class HostTree;

// Gives the GPUs that the driver shows (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER) the ranks 0, 1,
// ... in the driver's order, and the others no rank, so that NCCL leaves them out. Returns the
// assumptions, a sentence each. The driver's default order begins with the fastest GPU; here it is
// by bus id, which is the same if all GPUs are equal.
//   Errors  kConfig: the list shows no GPU, one twice, or has a UUID that no GPU or several have.
//   Source  CUDA C++ Programming Guide, environment variables: a list ends at its first number that
//           no GPU has; a UUID may be cut short. MIG User Guide, CUDA device enumeration: a process
//           that is shown a MIG device sees that alone.
std::vector<std::string> rank_visible_gpus(HostTree& host, const Environment& environment);

}  // namespace gxp
