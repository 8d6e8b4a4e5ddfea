// Launches of the norms' kernels and of column sums. An RMS norm is a layer norm whose means and
// biases are zero: it is one without `bias`, and its means are null.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/array.h"

namespace gxp {

struct CudaNorm {
  size_t rows, columns;
  CudaArray out;          // (rows, columns)
  const float* x;         // likewise
  ConstCudaArray weight;  // (columns)
  ConstCudaArray bias;    // (columns), of weight's type
};
// mean(rows) and rstd(rows) are outputs.
cudaError_t launch_norm_forward(cudaStream_t stream, const CudaNorm& norm, float* mean, float* rstd,
                                float eps);
// The same bits from given statistics.
cudaError_t launch_norm_apply(cudaStream_t stream, const CudaNorm& norm, const float* mean,
                              const float* rstd);

struct CudaNormBackward {
  size_t rows, columns;
  float* dx;            // (rows, columns), added to
  ConstCudaArray dout;  // (rows, columns)
  const float* x;       // likewise
  const float* mean;    // (rows); null for an RMS norm
  const float* rstd;    // (rows)
  ConstCudaArray weight;
};
// Blocks of rows whose sums are kept apart: by the shape alone.
size_t norm_backward_blocks(size_t rows, size_t columns);
// dx, and partial(blocks, 2, columns): each block's sums for dweight, then for dbias. Null: none.
cudaError_t launch_norm_backward(cudaStream_t stream, const CudaNormBackward& norm, float* partial);

// Blocks of rows that launch_partial_columns() sums, by the shape alone.
size_t column_sum_blocks(size_t rows, size_t columns);
// partial(blocks, columns): each block's column sums of x(rows, columns).
cudaError_t launch_partial_columns(cudaStream_t stream, size_t rows, size_t columns, float* partial,
                                   ConstCudaArray x);
// out(columns) += the column sums of rows that are `stride` floats apart.
cudaError_t launch_add_columns(cudaStream_t stream, size_t rows, size_t columns, size_t stride,
                               float* out, const float* partial);

}  // namespace gxp
