// One warp's use of kernels/cuda/attention/mma.cuh, for its test.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "lib/base/dtype.h"

namespace gxp {

// sums(16, 8) += left(16, 16) right(16, 8), of halves of `dtype`.
cudaError_t launch_product(cudaStream_t stream, DType dtype, float* sums, const uint16_t* left,
                           const uint16_t* right);
// out(2, 32, 4) = what each lane gets of the four matrices (8, 8) at x and of their transposes,
// copied to shared memory first; `rows` of the 32 are copied, the rest are zeros.
cudaError_t launch_matrices(cudaStream_t stream, uint32_t* out, const uint16_t* x, int rows);

}  // namespace gxp
