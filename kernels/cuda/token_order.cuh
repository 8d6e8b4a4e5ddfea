// Tokens as keys by which rows are sorted.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace gxp {

struct TokenRows {
  size_t rows, columns;
  const int32_t* tokens;  // (rows)
  size_t vocabulary;
  int* outside;  // becomes 1 where a token is not below `vocabulary`
};

// The row's token; `vocabulary` where it lies outside.
__device__ __forceinline__ uint32_t token_key(const TokenRows& rows, size_t row) {
  const auto token = uint32_t(rows.tokens[row]);
  return token < rows.vocabulary ? token : uint32_t(rows.vocabulary);
}

// Elements of i32 that launch_sort_tokens needs as scratch, the sorted order at their front.
size_t token_order_elements(size_t count);
// order(rows): the rows sorted by token, rows of one token in their order; rows with invalid tokens
// last.
cudaError_t launch_sort_tokens(cudaStream_t stream, const TokenRows& rows, int32_t* scratch);

}  // namespace gxp
