// How many ranks compute on this rank's GPU.
#pragma once

#include "lib/device/device.h"

namespace gxp {

class Communicator;

// [collective] ranks_on_gpu() (lib/device/gpu_share.h) of what all ranks tell of their GPUs. `gpu`
// is what this rank computes on; 1 if that is a CPU.
int count_ranks_on(Device& gpu, Communicator& communicator);

}  // namespace gxp
