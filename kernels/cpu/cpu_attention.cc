#include "kernels/cpu/cpu_attention.h"

#include "kernels/tensor_data.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

// Queries, keys and values of all heads side by side in one array.
AttentionShape packed_shape(const Shape& qkv, int heads) {
  GXP_ASSERT(qkv.rank() == 3 && heads > 0 && qkv[2] % (3 * static_cast<size_t>(heads)) == 0);
  const auto h = static_cast<size_t>(heads);
  return {qkv[1], h, h, qkv[2] / (3 * h)};
}

template <class Float>
AttentionRows<Float> packed_rows(Float* qkv, const AttentionShape& shape) {
  const size_t channels = shape.heads * shape.head_size;
  return {qkv, qkv + channels, qkv + 2 * channels, 3 * channels, 3 * channels};
}

template <class AnyTensor>
AttentionShape grouped_shape(const GroupedHeads<AnyTensor>& in) {
  const Shape& queries = in.queries.shape;
  GXP_ASSERT(in.kv_heads > 0 && in.heads > 0 && in.heads % in.kv_heads == 0);
  const auto heads = static_cast<size_t>(in.heads);
  GXP_ASSERT(queries.rank() == 3 && queries[2] % heads == 0);
  return {queries[1], heads, static_cast<size_t>(in.kv_heads), queries[2] / heads};
}

template <class Float, class AnyTensor>
AttentionRows<Float> grouped_rows(const GroupedHeads<AnyTensor>& in, const AttentionShape& shape) {
  const size_t rows = in.queries.shape.rows();
  const size_t wide = shape.heads * shape.head_size;
  const size_t narrow = shape.kv_heads * shape.head_size;
  return {matrix_of(in.queries, rows, wide), matrix_of(in.keys, rows, narrow),
          matrix_of(in.values, rows, narrow), wide, narrow};
}

}  // namespace

void CpuAttention::forward(const Tensor& out, const Tensor& lse, const ConstTensor& qkv,
                           int heads) {
  const AttentionShape shape = packed_shape(qkv.shape, heads);
  const size_t rows = qkv.shape.rows();
  const size_t channels = shape.heads * shape.head_size;
  run_forward({.shape = shape,
               .in = packed_rows(matrix_of(qkv, rows, 3 * channels), shape),
               .out = matrix_of(out, rows, channels),
               .lse = vector_of(lse, rows * shape.heads)},
              qkv.shape[0]);
}

void CpuAttention::forward(const Tensor& out, const Tensor& lse,
                           const GroupedHeads<ConstTensor>& in) {
  const AttentionShape shape = grouped_shape(in);
  const size_t rows = in.queries.shape.rows();
  run_forward({.shape = shape,
               .in = grouped_rows<const float>(in, shape),
               .out = matrix_of(out, rows, shape.heads * shape.head_size),
               .lse = vector_of(lse, rows * shape.heads)},
              in.queries.shape[0]);
}

void CpuAttention::backward(const Tensor& dqkv, const Tensor& delta, const ConstTensor& dout,
                            const ConstTensor& qkv, const ConstTensor& out, const ConstTensor& lse,
                            int heads) {
  const AttentionShape shape = packed_shape(qkv.shape, heads);
  const size_t rows = qkv.shape.rows();
  const size_t channels = shape.heads * shape.head_size;
  run_backward({.shape = shape,
                .in = packed_rows(matrix_of(qkv, rows, 3 * channels), shape),
                .out = matrix_of(out, rows, channels),
                .lse = vector_of(lse, rows * shape.heads),
                .dout = matrix_of(dout, rows, channels),
                .gradients = packed_rows(matrix_of(dqkv, rows, 3 * channels), shape),
                .delta = vector_of(delta, rows * shape.heads)},
               qkv.shape[0]);
}

void CpuAttention::backward(const GroupedHeads<Tensor>& gradients, const Tensor& delta,
                            const ConstTensor& dout, const GroupedHeads<ConstTensor>& in,
                            const ConstTensor& out, const ConstTensor& lse) {
  const AttentionShape shape = grouped_shape(in);
  const size_t rows = in.queries.shape.rows();
  const size_t channels = shape.heads * shape.head_size;
  run_backward({.shape = shape,
                .in = grouped_rows<const float>(in, shape),
                .out = matrix_of(out, rows, channels),
                .lse = vector_of(lse, rows * shape.heads),
                .dout = matrix_of(dout, rows, channels),
                .gradients = grouped_rows<float>(gradients, shape),
                .delta = vector_of(delta, rows * shape.heads)},
               in.queries.shape[0]);
}

template <class Body>
void CpuAttention::for_each(size_t count, const AttentionShape& shape, const Body& body) {
  const size_t floats = attention_scratch_floats(shape);
  const size_t threads = scratch_.size();
  pool_.run([&](int thread) {
    const auto t = static_cast<size_t>(thread);
    float* scratch = scratch_[t].take(floats);
    for (size_t i = count * t / threads; i < count * (t + 1) / threads; ++i) body(i, scratch);
  });
}

void CpuAttention::run_forward(const AttentionForward& args, size_t batch) {
  for_each(batch * args.shape.heads, args.shape,
           [&](size_t pair, float* scratch) { kernels_.forward(args, pair, scratch); });
}

void CpuAttention::run_backward(const AttentionBackward& args, size_t batch) {
  for_each(batch * args.shape.kv_heads, args.shape,
           [&](size_t group, float* scratch) { kernels_.backward(args, group, scratch); });
}

}  // namespace gxp
