// Launches of the fused classifier.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/array.h"

namespace gxp {

struct CudaTargets {
  size_t rows, columns;
  const int32_t* targets;  // (rows)
  float* losses;           // (rows); NaN where the target lies beyond the columns
  int* outside;            // becomes 1 where one does
};
// logits(rows, columns) become (softmax - onehot(target)) * scale.
cudaError_t launch_classifier(cudaStream_t stream, const CudaTargets& rows, CudaArray logits,
                              float scale);
cudaError_t launch_classifier_loss(cudaStream_t stream, const CudaTargets& rows,
                                   ConstCudaArray logits);

}  // namespace gxp
