// Launches of sums in f64 whose order depends on the count alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/array.h"

namespace gxp {

// How many partial sums a sum of `count` elements needs room for.
size_t partial_sums_of(size_t count);
// *total += the sum of x, or of its squares; `partial` has room for partial_sums_of(count).
cudaError_t launch_add_sum(cudaStream_t stream, size_t count, double* total, double* partial,
                           ConstCudaArray x, bool of_squares);

// Of x(rows, columns) f32: sums(rows), sums(columns) of squares.
cudaError_t launch_row_squares(cudaStream_t stream, size_t rows, size_t columns, double* sums,
                               const float* x);
cudaError_t launch_column_squares(cudaStream_t stream, size_t rows, size_t columns, double* sums,
                                  const float* x);

}  // namespace gxp
