// Launches of the optimizers' kernels: arrays of `count` f32, gradients of any of the three types.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/array.h"
#include "kernels/math/adamw.h"
#include "kernels/math/lion.h"
#include "kernels/math/momentum.h"

namespace gxp {

struct CudaAdamWArrays {
  float* weights;
  float* first;
  float* second;
  ConstCudaArray gradients;
};
cudaError_t launch_adamw(cudaStream_t stream, size_t count, const CudaAdamWArrays& arrays,
                         const AdamWFactors& factors);
// momentum: or null.
cudaError_t launch_sgd(cudaStream_t stream, size_t count, float* weights, float* momentum,
                       ConstCudaArray gradients, const SgdFactors& factors);
cudaError_t launch_lion(cudaStream_t stream, size_t count, float* weights, float* momentum,
                        ConstCudaArray gradients, const LionFactors& factors);
cudaError_t launch_momentum(cudaStream_t stream, size_t count, float* direction, float* momentum,
                            ConstCudaArray gradients, const MomentumFactors& factors);
// out(rows, columns) = x * by_row * by_column; out may be x.
cudaError_t launch_scale(cudaStream_t stream, size_t rows, size_t columns, float* out,
                         const float* x, const float* by_row, const float* by_column);

}  // namespace gxp
