// Tokens as keys by which rows are sorted.
#pragma once

#include "kernels/cuda/embedding_launch.h"

namespace gxp {

// The row's token; `vocabulary` where it lies outside.
__device__ __forceinline__ uint32_t token_key(const CudaTokenRows& rows, size_t row) {
  const auto token = uint32_t(rows.tokens[row]);
  return token < rows.vocabulary ? token : uint32_t(rows.vocabulary);
}

}  // namespace gxp
