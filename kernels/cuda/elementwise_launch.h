// Launches of the element-wise kernels; arrays have `count` elements and may be the same where
// kernels/ops.h says so.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/array.h"
#include "kernels/math/random_block.h"

namespace gxp {

// All arrays of one call have one type.
cudaError_t launch_gelu_forward(cudaStream_t stream, size_t count, CudaArray out, ConstCudaArray x);
cudaError_t launch_gelu_backward(cudaStream_t stream, size_t count, CudaArray dx,
                                 CudaArray activated, ConstCudaArray dout, ConstCudaArray x);
cudaError_t launch_swiglu_forward(cudaStream_t stream, size_t count, CudaArray out,
                                  ConstCudaArray gate, ConstCudaArray up);
cudaError_t launch_swiglu_backward(cudaStream_t stream, size_t count, CudaArray dout,
                                   CudaArray gate, CudaArray up);

// Of any types each.
cudaError_t launch_convert(cudaStream_t stream, size_t count, CudaArray out, ConstCudaArray x);
cudaError_t launch_add(cudaStream_t stream, size_t count, CudaArray out, ConstCudaArray a,
                       ConstCudaArray b);
// out(rows, columns) += row(columns), of any types each.
cudaError_t launch_add_row(cudaStream_t stream, size_t count, CudaArray out, ConstCudaArray row,
                           size_t columns);

// out: bf16.
cudaError_t launch_round_stochastically(cudaStream_t stream, size_t count, void* out,
                                        const float* x, const RandomBits& bits);
cudaError_t launch_fill(cudaStream_t stream, size_t count, float* out, float value);

}  // namespace gxp
