// How many GPUs a command's ranks can have.
#pragma once

namespace gxp {

// The GPUs visible to this process (CUDA_VISIBLE_DEVICES), at least 1. Throws kUnavailable with the
// reason if there is none that can be used.
int count_gpus();

}  // namespace gxp
