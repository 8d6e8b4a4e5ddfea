// Launches of the embeddings' kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/array.h"

namespace gxp {

struct CudaTokenRows {
  size_t rows, columns;
  const int32_t* tokens;  // (rows)
  size_t vocabulary;
  int* outside;  // becomes 1 where a token is not below `vocabulary`
};
// out(rows, columns) = the tokens' rows of token_table, plus row r % positions of position_table,
// which may be null. NaN where a token lies outside.
cudaError_t launch_embedding_forward(cudaStream_t stream, const CudaTokenRows& rows, float* out,
                                     ConstCudaArray token_table, ConstCudaArray position_table,
                                     size_t positions);

// Elements of i32 that sort_tokens needs as scratch, the sorted order at their front.
size_t token_order_elements(size_t count);
// order(rows): the rows by token, those of one token in their order; those that lie outside last.
cudaError_t launch_sort_tokens(cudaStream_t stream, const CudaTokenRows& rows, int32_t* scratch);
// dtable(vocabulary, columns) += each token's rows of dout(rows, columns), one by one in their
// order.
cudaError_t launch_add_token_rows(cudaStream_t stream, const CudaTokenRows& rows, float* dtable,
                                  const float* dout, const int32_t* order);
// dtable(positions, columns) += dout(batch, positions, columns), in the order of the batch.
cudaError_t launch_add_position_rows(cudaStream_t stream, size_t batch, size_t elements,
                                     float* dtable, const float* dout);

}  // namespace gxp
