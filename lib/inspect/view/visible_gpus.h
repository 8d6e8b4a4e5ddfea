// Which GPUs of this host the ranks of a job get, by the variables that the CUDA driver reads.
#pragma once

#include <string>
#include <vector>

#include "lib/base/environment.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {

// Gives the GPUs that the driver shows the ranks 0, 1, ... as it would number them, and the others
// none, so that NCCL leaves them out: by CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER. Returns what
// was assumed, a sentence each. By its own order the driver puts the fastest first; GPUs are taken
// by bus id, which is the same if all are alike.
//   Errors  kConfig: the list shows no GPU, one twice, or names one by its UUID, which is not known
//           here.
//   Source  CUDA C++ Programming Guide, environment variables: a list ends at its first number that
//           no GPU has.
std::vector<std::string> rank_visible_gpus(HostTree& host, const Environment& environment);

}  // namespace gxp
