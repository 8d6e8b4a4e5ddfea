// Matrices in 8 bits, as operands of cuBLASLt's products.
#pragma once

#include "kernels/cuda/cuda_queue.h"
#include "kernels/math/float8_type.h"
#include "kernels/product_scratch.h"

namespace gxp {

struct Float8Matrix {
  const uint8_t* as_stored = nullptr;   // (rows, columns)
  const uint8_t* transposed = nullptr;  // (columns, rows), of zeros up to a multiple of 16 rows
  const float* factor = nullptr;        // times a code's number is the matrix's element
  Float8 type = Float8::kNone;
};

// Queues the kernels that make them in float8_bytes() from `at` on, which is aligned to
// kProductCopyAlignment; `at` moves past them. x is read once more if it has no `largest`.
Float8Matrix make_float8(CudaQueue& queue, std::byte*& at, const ConstTensor& x, Float8 type,
                         Float8Layouts layouts);
// The same for a weight, in both layouts, in kept memory; no kernel runs if they are already there.
// Else `at` is used.
Float8Matrix weight_codes(CudaQueue& queue, std::byte*& at, const ConstTensor& weight,
                          Float8Layouts layouts, const KeptCodes& kept);

}  // namespace gxp
