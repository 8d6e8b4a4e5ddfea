// Launches of the element-wise kernels over raw device memory: the border between nvcc, which does
// not compile fmt's format strings, and the rest of gxp. Arrays have `count` elements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/math/adamw.h"

namespace gxp {

struct CudaAdamWArrays {
  float* weights;
  float* first;
  float* second;
  const float* gradients;
};

cudaError_t launch_gelu_forward(cudaStream_t stream, size_t count, float* out, const float* x);
// dx may be dout; activated may be x.
cudaError_t launch_gelu_backward(cudaStream_t stream, size_t count, float* dx, float* activated,
                                 const float* dout, const float* x);
cudaError_t launch_adamw(cudaStream_t stream, size_t count, const CudaAdamWArrays& arrays,
                         const AdamWFactors& factors);
cudaError_t launch_fill(cudaStream_t stream, size_t count, float* out, float value);

}  // namespace gxp
