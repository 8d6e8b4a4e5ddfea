#include "kernels/cuda/cudnn/cudnn_attention_graph.h"

namespace gxp {
namespace {

using Tensor = CudnnGraph::Tensor;
using Pointwise = CudnnPointwise;

CudnnData type_of(DType dtype) {
  return dtype == DType::kBF16 ? CudnnData::kBF16 : CudnnData::kF16;
}

// The tensors of one call. cuDNN's letters: (B, H, T, D).
struct Described {
  Described(CudnnGraph& in, const CudnnAttentionShape& shape)
      : graph(in),
        type(type_of(shape.dtype)),
        batch(int64_t(shape.heads.batch)),
        heads(int64_t(shape.heads.heads)),
        kv_heads(int64_t(shape.heads.kv_heads)),
        positions(int64_t(shape.heads.positions)),
        size(int64_t(shape.heads.head_size)),
        of(shape) {}

  [[nodiscard]] Tensor rows(int64_t id, int64_t heads_of_it, const HeadStrides& strides) const {
    const auto row = int64_t(strides.row);
    return graph.tensor(id, type, {batch, heads_of_it, positions, size},
                        {positions * row, int64_t(strides.head), row, 1});
  }
  [[nodiscard]] Tensor queries(int64_t id) const { return rows(id, heads, of.queries); }
  [[nodiscard]] Tensor outs(int64_t id) const { return rows(id, heads, of.outs); }
  [[nodiscard]] Tensor kv(int64_t id) const { return rows(id, kv_heads, of.kv); }
  // Keys or values with the last two dimensions exchanged.
  [[nodiscard]] Tensor kv_transposed(int64_t id) const {
    const auto row = int64_t(of.kv.row);
    return graph.tensor(id, type, {batch, kv_heads, size, positions},
                        {positions * row, int64_t(of.kv.head), 1, row});
  }
  [[nodiscard]] Tensor query_sums() const {
    return graph.tensor(kCudnnQuerySums, CudnnData::kF32, {batch, heads, positions, size},
                        {heads * positions * size, positions * size, size, 1});
  }
  // A float for each query, as lse is.
  [[nodiscard]] Tensor sums(int64_t id) const {
    return graph.tensor(id, CudnnData::kF32, sums_dims(), {heads * positions, positions, 1, 1});
  }
  [[nodiscard]] CudnnDims sums_dims() const { return {batch, heads, positions, 1}; }
  [[nodiscard]] CudnnDims scores_dims() const { return {batch, heads, positions, positions}; }

  // queries keys' * scale.
  [[nodiscard]] Tensor scores(const Tensor& q, const Tensor& scale) const {
    const Tensor products = graph.between(CudnnData::kF32, scores_dims());
    graph.matmul(q, kv_transposed(kCudnnKeys), products);
    return graph.pointwise(Pointwise::kMultiply, products, scale);
  }
  // What is above the diagonal becomes minus infinity.
  [[nodiscard]] Tensor masked(const Tensor& x) const {
    const Tensor query = graph.index_like(x, 2);
    const Tensor key = graph.index_like(x, 3);
    return graph.select(graph.at_least(query, key), x, graph.scalar(kCudnnMinusInfinity));
  }
  // out = x y, of a head of queries each; where they are grouped, its sums over the heads of each
  // group.
  void multiply_into_kv(const Tensor& x, const Tensor& y, const Tensor& out) const {
    if (heads == kv_heads) return graph.matmul(x, y, out);
    const Tensor of_heads = graph.between(type, {batch, heads, positions, size});
    graph.matmul(x, y, of_heads);
    graph.reduce(CudnnReduction::kSum, of_heads, out);
  }

  CudnnGraph& graph;
  CudnnData type;
  int64_t batch, heads, kv_heads, positions, size;
  const CudnnAttentionShape& of;
};

}  // namespace

void describe_attention_forward(CudnnGraph& graph, const CudnnAttentionShape& shape) {
  const Described in(graph, shape);
  const Tensor scores = in.masked(in.scores(in.queries(kCudnnQueries), graph.scalar(kCudnnScale)));
  const Tensor largest = graph.between(CudnnData::kF32, in.sums_dims());
  graph.reduce(CudnnReduction::kMax, scores, largest);
  const Tensor weights =
      graph.pointwise(Pointwise::kExp, graph.pointwise(Pointwise::kSubtract, scores, largest));
  const Tensor sum = graph.between(CudnnData::kF32, in.sums_dims());
  graph.reduce(CudnnReduction::kSum, weights, sum);
  graph.pointwise(Pointwise::kAdd, largest, graph.pointwise(Pointwise::kLog, sum),
                  in.sums(kCudnnLse));
  const Tensor probabilities = graph.between(in.type, in.scores_dims());
  graph.pointwise(Pointwise::kDivide, weights, sum, probabilities);
  graph.matmul(probabilities, in.kv(kCudnnValues), in.outs(kCudnnOut));
}

void describe_attention_backward(CudnnGraph& graph, const CudnnAttentionShape& shape) {
  const Described in(graph, shape);
  const Tensor queries = in.queries(kCudnnQueries), dout = in.outs(kCudnnDout);
  const Tensor scale = graph.scalar(kCudnnScale), delta = in.sums(kCudnnDelta);
  // delta = row sums of dout * out.
  const Tensor row_sums = graph.between(CudnnData::kF32, in.sums_dims());
  graph.reduce(CudnnReduction::kSum,
               graph.pointwise(Pointwise::kMultiply, dout, in.outs(kCudnnOut)), row_sums);
  graph.pointwise(Pointwise::kMultiply, row_sums, graph.scalar(kCudnnOne), delta);
  // P = exp(scores - lse); dV = P' dout.
  const Tensor shifted =
      graph.pointwise(Pointwise::kSubtract, in.scores(queries, scale), in.sums(kCudnnLse));
  const Tensor probabilities = graph.pointwise(Pointwise::kExp, in.masked(shifted));
  in.multiply_into_kv(graph.transposed(probabilities, in.type), dout, in.kv(kCudnnValueGradients));
  // dS = P * (dout V' - delta) * scale; dK = dS' Q; dQ = dS K.
  const Tensor products = graph.between(CudnnData::kF32, in.scores_dims());
  graph.matmul(dout, in.kv_transposed(kCudnnValues), products);
  const Tensor centred = graph.pointwise(Pointwise::kSubtract, products, delta);
  const Tensor slopes = graph.pointwise(
      Pointwise::kMultiply, graph.pointwise(Pointwise::kMultiply, centred, probabilities), scale);
  in.multiply_into_kv(graph.transposed(slopes, in.type), queries, in.kv(kCudnnKeyGradients));
  const Tensor keys = graph.transposed(in.kv_transposed(kCudnnKeys), CudnnData::kF32);
  const Tensor gradients = in.queries(kCudnnQueryGradients);
  if (shape.order == SumOrder::kFixed) return graph.matmul(slopes, keys, gradients);
  const Tensor sums = in.query_sums();
  graph.matmul(slopes, keys, sums);
  graph.copy(sums, gradients);
}

}  // namespace gxp
