// The resources of a rank on a GPU. Only in builds with GXP_CUDA=ON.
#pragma once

#include "lib/train/step/backend.h"

namespace gxp {

// On GPU `index`. Throws kUnavailable if there is none, it has no 8-bit products for train.matmul
// "fp8", or a library that its kernels need is missing; each message says which.
Backend make_cuda_backend(int index, const TrainConfig& config, int local_world_size);

}  // namespace gxp
