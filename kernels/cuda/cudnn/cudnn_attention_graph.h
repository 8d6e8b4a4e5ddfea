// Causal attention (kernels/ops.h) in cuDNN's words: graphs of the operations that its fused
// engines know. Scores have a scale, but neither a window nor a cap.
#pragma once

#include "kernels/attention_args.h"
#include "kernels/cuda/cudnn/cudnn_graph.h"

namespace gxp {

// What a call of cuDNN computes: some rows of a batch with all of their heads, or of one row some
// of its heads of keys and values with the queries' heads that read them.
struct CudnnAttentionShape {
  AttentionShape heads;               // of this call
  HeadStrides queries, kv, outs;      // of the batch's arrays
  DType dtype;                        // bf16 or f16
  SumOrder order = SumOrder::kFixed;  // of backward's sums
  auto operator<=>(const CudnnAttentionShape&) const = default;
};

// The tensors that lie in memory (CudnnGraph::TensorBinding).
enum CudnnAttentionTensor : int64_t {
  kCudnnQueries = 1,
  kCudnnKeys,
  kCudnnValues,
  kCudnnOut,
  kCudnnLse,
  kCudnnDout,
  kCudnnDelta,
  kCudnnQuerySums,  // f32, of SumOrder::kAny alone; cuDNN clears them
  kCudnnQueryGradients,
  kCudnnKeyGradients,
  kCudnnValueGradients,
  kCudnnScale,  // scalars
  kCudnnMinusInfinity,
  kCudnnOne,
};

// Reads queries, keys and values; stores out and lse.
void describe_attention_forward(CudnnGraph& graph, const CudnnAttentionShape& shape);
// Reads those, out, lse and dout; stores delta and the gradients. In any order of sums those of
// queries are added up in memory: a matrix of f32 that is not virtual is how cuDNN is asked for it.
void describe_attention_backward(CudnnGraph& graph, const CudnnAttentionShape& shape);

}  // namespace gxp
