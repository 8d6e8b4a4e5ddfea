// Launch of the rotation of positions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/array.h"

namespace gxp {

struct CudaRotation {
  size_t rows, positions;  // row r has position r % positions
  size_t heads, pairs;
  CudaArray x;           // (rows, heads, 2, pairs), in place
  const float* cosines;  // (positions, pairs)
  const float* sines;    // likewise
  float direction;       // 1 or -1
};
cudaError_t launch_rotate(cudaStream_t stream, const CudaRotation& rotation);

}  // namespace gxp
