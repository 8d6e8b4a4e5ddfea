// Matrices in 8 bits, as operands of cuBLASLt's products.
#pragma once

#include "kernels/cuda/cuda_queue.h"
#include "kernels/math/float8_type.h"

namespace gxp {

// Which copies of a matrix's codes products need: cuBLASLt's have the elements that are multiplied
// with each other side by side in both operands.
struct Float8Ways {
  bool as_stored = false, transposed = false;
};

struct Float8Matrix {
  const uint8_t* as_stored = nullptr;   // (rows, columns)
  const uint8_t* transposed = nullptr;  // (columns, rows), of zeros up to a multiple of 16 rows
  const float* factor = nullptr;        // times the codes' numbers are the matrix's
  Float8 type = Float8::kNone;
};

// What they take of the scratch memory.
size_t float8_bytes(const ConstTensor& x, Float8Ways ways);

// Queues what makes them, from `at` on, which is aligned to 256 bytes; `at` moves behind them.
Float8Matrix make_float8(CudaQueue& queue, std::byte*& at, const ConstTensor& x, Float8 type,
                         Float8Ways ways);

}  // namespace gxp
