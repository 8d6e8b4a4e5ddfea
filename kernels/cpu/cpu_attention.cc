#include "kernels/cpu/cpu_attention.h"

#include "kernels/cpu/float_pieces.h"
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

// Of a tensor of f32 or a half type, in the host's memory, of the given sizes.
template <class AnyTensor>
auto data_of(const AnyTensor& tensor, size_t rows, size_t columns) {
  GXP_ASSERT(tensor.dtype == DType::kF32 || is_half(tensor.dtype));
  GXP_ASSERT(tensor.memory.space == MemorySpace::kHost);
  GXP_ASSERT(tensor.shape.rows() == rows && tensor.shape.columns() == columns);
  return tensor.memory.data;
}

template <class Void, class AnyTensor>
AttentionRows<Void> packed_rows(const AnyTensor& qkv, const AttentionShape& shape) {
  const size_t channels = shape.heads * shape.head_size;
  auto* const first = data_of(qkv, qkv.shape.rows(), 3 * channels);
  const size_t bytes = channels * size_of(qkv.dtype);
  return {first, first + bytes, first + 2 * bytes, 3 * channels, 3 * channels};
}

template <class AnyTensor>
AttentionShape grouped_shape(const GroupedHeads<AnyTensor>& in) {
  const Shape& queries = in.queries.shape;
  GXP_ASSERT(in.kv_heads > 0 && in.heads > 0 && in.heads % in.kv_heads == 0);
  const auto heads = static_cast<size_t>(in.heads);
  GXP_ASSERT(queries.rank() == 3 && queries[2] % heads == 0);
  return {queries[1], heads, static_cast<size_t>(in.kv_heads), queries[2] / heads};
}

template <class Void, class AnyTensor>
AttentionRows<Void> grouped_rows(const GroupedHeads<AnyTensor>& in, const AttentionShape& shape) {
  const size_t rows = in.queries.shape.rows();
  const size_t wide = shape.heads * shape.head_size;
  const size_t narrow = shape.kv_heads * shape.head_size;
  GXP_ASSERT(in.keys.dtype == in.queries.dtype && in.values.dtype == in.queries.dtype);
  return {data_of(in.queries, rows, wide), data_of(in.keys, rows, narrow),
          data_of(in.values, rows, narrow), wide, narrow};
}

AttentionForward forward_args(const AttentionShape& shape, const AttentionRows<const void>& in,
                              const Tensor& out, const Tensor& lse) {
  const size_t rows = out.shape.rows();
  return {shape, out.dtype, in, data_of(out, rows, shape.heads * shape.head_size),
          vector_of(lse, rows * shape.heads)};
}

// What both forms of backward take beside their heads.
struct BackwardTensors {
  const Tensor& delta;
  const ConstTensor& dout;
  const ConstTensor& out;
  const ConstTensor& lse;
};

AttentionBackward backward_args(const AttentionShape& shape, const AttentionRows<const void>& in,
                                const AttentionRows<void>& gradients, const BackwardTensors& t) {
  const size_t rows = t.out.shape.rows();
  const size_t channels = shape.heads * shape.head_size;
  GXP_ASSERT(t.dout.dtype == t.out.dtype);
  return {shape,
          t.out.dtype,
          in,
          data_of(t.out, rows, channels),
          vector_of(t.lse, rows * shape.heads),
          data_of(t.dout, rows, channels),
          gradients,
          vector_of(t.delta, rows * shape.heads)};
}

}  // namespace

void CpuAttention::forward(const Tensor& out, const Tensor& lse, const ConstTensor& qkv,
                           int heads) {
  const AttentionShape shape = packed_shape(qkv.shape, heads);
  GXP_ASSERT(out.dtype == qkv.dtype);
  run_forward(forward_args(shape, packed_rows<const void>(qkv, shape), out, lse), qkv.shape[0]);
}

void CpuAttention::forward(const Tensor& out, const Tensor& lse,
                           const GroupedHeads<ConstTensor>& in) {
  const AttentionShape shape = grouped_shape(in);
  GXP_ASSERT(out.dtype == in.queries.dtype);
  run_forward(forward_args(shape, grouped_rows<const void>(in, shape), out, lse),
              in.queries.shape[0]);
}

void CpuAttention::backward(const Tensor& dqkv, const Tensor& delta, const ConstTensor& dout,
                            const ConstTensor& qkv, const ConstTensor& out, const ConstTensor& lse,
                            int heads) {
  const AttentionShape shape = packed_shape(qkv.shape, heads);
  GXP_ASSERT(out.dtype == qkv.dtype && dqkv.dtype == qkv.dtype);
  run_backward(backward_args(shape, packed_rows<const void>(qkv, shape),
                             packed_rows<void>(dqkv, shape), {delta, dout, out, lse}),
               qkv.shape[0]);
}

void CpuAttention::backward(const GroupedHeads<Tensor>& gradients, const Tensor& delta,
                            const ConstTensor& dout, const GroupedHeads<ConstTensor>& in,
                            const ConstTensor& out, const ConstTensor& lse) {
  const AttentionShape shape = grouped_shape(in);
  GXP_ASSERT(out.dtype == in.queries.dtype && gradients.queries.dtype == out.dtype);
  run_backward(backward_args(shape, grouped_rows<const void>(in, shape),
                             grouped_rows<void>(gradients, shape), {delta, dout, out, lse}),
               in.queries.shape[0]);
}

template <class Body>
void CpuAttention::for_each(size_t count, size_t floats, const Body& body) {
  const size_t threads = scratch_.size();
  pool_.run([&](int thread) {
    const auto t = static_cast<size_t>(thread);
    float* scratch = scratch_[t].take(floats);
    for (size_t i = count * t / threads; i < count * (t + 1) / threads; ++i) body(i, scratch);
  });
}

void CpuAttention::run_forward(const AttentionForward& args, size_t batch) {
  for_each(batch * args.shape.heads, attention_scratch_floats(args.shape),
           [&](size_t pair, float* scratch) { kernels_.forward(args, pair, scratch); });
}

void CpuAttention::run_backward(const AttentionBackward& args, size_t batch) {
  for_each(batch * args.shape.kv_heads, attention_scratch_floats(args.shape),
           [&](size_t group, float* scratch) { kernels_.backward(args, group, scratch); });
}

}  // namespace gxp
