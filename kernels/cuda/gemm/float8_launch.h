// Launches that make operands of products in 8 bits (kernels/math/float8.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/array.h"
#include "kernels/math/float8_type.h"

namespace gxp {

// The scale of one matrix, in the GPU's memory: nobody on the host waits for it.
struct Float8Scale {
  uint32_t largest;  // the bits of its largest |x|
  float factor;      // times a code's number is what the matrix has
};

// Sets `scale->largest`. Beside the launch one of cudaMemsetAsync.
cudaError_t launch_largest(cudaStream_t stream, size_t count, Float8Scale* scale, ConstCudaArray x);

struct Float8Codes {
  Float8 type;
  uint8_t* as_stored = nullptr;   // (rows, columns); none if null
  uint8_t* transposed = nullptr;  // (columns, float8_rows(rows)); none if null
};

// Makes the codes of x(rows, columns), in one read of it, and sets `scale->factor`, from `largest`.
// Columns are a multiple of 4 and x lies in fours.
cudaError_t launch_float8(cudaStream_t stream, size_t rows, size_t columns,
                          const Float8Codes& codes, Float8Scale* scale, ConstCudaArray x);

}  // namespace gxp
