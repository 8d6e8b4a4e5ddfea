#include "kernels/attention_ops.h"

#include "lib/base/error.h"

namespace gxp {
namespace {

// Queries, keys and values of all heads side by side in one array.
AttentionShape packed_shape(const Shape& qkv, int heads) {
  GXP_ASSERT(qkv.rank() == 3 && heads > 0 && qkv[2] % (3 * static_cast<size_t>(heads)) == 0);
  const auto h = static_cast<size_t>(heads);
  return {qkv[0], qkv[1], h, h, qkv[2] / (3 * h)};
}

template <class AnyTensor>
AttentionShape grouped_shape(const GroupedHeads<AnyTensor>& in) {
  const Shape& queries = in.queries.shape;
  GXP_ASSERT(in.kv_heads > 0 && in.heads > 0 && in.heads % in.kv_heads == 0);
  const auto heads = static_cast<size_t>(in.heads);
  GXP_ASSERT(queries.rank() == 3 && queries[2] % heads == 0);
  return {queries[0], queries[1], heads, static_cast<size_t>(in.kv_heads), queries[2] / heads};
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// One operation's tensors: of `dtype`, f32 or a half type, in `space`.
struct Tensors {
  // The data of a tensor with these sizes.
  template <class AnyTensor>
  auto data_of(const AnyTensor& tensor, size_t rows, size_t columns) const {
    GXP_ASSERT(tensor.dtype == dtype && is_float(dtype));
    GXP_ASSERT(tensor.memory.space == space);
    GXP_ASSERT(tensor.shape.rows() == rows && tensor.shape.columns() == columns);
    return tensor.memory.data;
  }
  template <class AnyTensor>
  auto outs_of(const AnyTensor& tensor, const AttentionShape& shape) const {
    return data_of(tensor, shape.batch * shape.positions, shape.heads * shape.head_size);
  }
  // (B, heads, T) f32.
  template <class AnyTensor>
  auto sums_of(const AnyTensor& tensor, const AttentionShape& shape) const {
    GXP_ASSERT(tensor.dtype == DType::kF32 && tensor.memory.space == space);
    GXP_ASSERT(tensor.count() == shape.batch * shape.heads * shape.positions);
    using Byte = decltype(tensor.memory.data);
    using Float = std::conditional_t<std::is_same_v<Byte, std::byte*>, float*, const float*>;
    return reinterpret_cast<Float>(tensor.memory.data);
  }

  template <class Void, class AnyTensor>
  AttentionRows<Void> rows_of(const AnyTensor& qkv, const AttentionShape& shape) const {
    const size_t channels = shape.heads * shape.head_size;
    auto* const first = data_of(qkv, shape.batch * shape.positions, 3 * channels);
    const size_t bytes = channels * size_of(dtype);
    return {first, first + bytes, first + 2 * bytes, 3 * channels, 3 * channels};
  }
  template <class Void, class AnyTensor>
  AttentionRows<Void> rows_of(const GroupedHeads<AnyTensor>& in,
                              const AttentionShape& shape) const {
    const size_t rows = shape.batch * shape.positions;
    const size_t wide = shape.heads * shape.head_size;
    const size_t narrow = shape.kv_heads * shape.head_size;
    return {data_of(in.queries, rows, wide), data_of(in.keys, rows, narrow),
            data_of(in.values, rows, narrow), wide, narrow};
  }

  MemorySpace space;
  DType dtype;
};

}  // namespace

void AttentionOps::attention_forward(Tensor out, Tensor lse, ConstTensor qkv, int heads) {
  const AttentionShape shape = packed_shape(qkv.shape, heads);
  const Tensors tensors = {space_, qkv.dtype};
  attend(AttentionForward{shape, qkv.dtype, tensors.rows_of<const void>(qkv, shape),
                          tensors.outs_of(out, shape), tensors.sums_of(lse, shape)});
  raise_largest(out);
}

void AttentionOps::grouped_attention_forward(Tensor out, Tensor lse,
                                             const GroupedHeads<ConstTensor>& in) {
  const AttentionShape shape = grouped_shape(in);
  const Tensors tensors = {space_, in.queries.dtype};
  attend(AttentionForward{shape, tensors.dtype, tensors.rows_of<const void>(in, shape),
                          tensors.outs_of(out, shape), tensors.sums_of(lse, shape)});
  raise_largest(out);
}

void AttentionOps::attention_backward(Tensor dqkv, Tensor scratch, ConstTensor dout,
                                      ConstTensor qkv, ConstTensor out, ConstTensor lse,
                                      int heads) {
  const AttentionShape shape = packed_shape(qkv.shape, heads);
  const Tensors tensors = {space_, qkv.dtype};
  attend(AttentionBackward{shape, qkv.dtype, tensors.rows_of<const void>(qkv, shape),
                           tensors.outs_of(out, shape), tensors.sums_of(lse, shape),
                           tensors.outs_of(dout, shape), tensors.rows_of<void>(dqkv, shape),
                           tensors.sums_of(scratch, shape)});
  raise_largest(dqkv);
}

void AttentionOps::grouped_attention_backward(const GroupedHeads<Tensor>& gradients, Tensor scratch,
                                              ConstTensor dout, const GroupedHeads<ConstTensor>& in,
                                              ConstTensor out, ConstTensor lse) {
  const AttentionShape shape = grouped_shape(in);
  const Tensors tensors = {space_, in.queries.dtype};
  attend(AttentionBackward{shape, tensors.dtype, tensors.rows_of<const void>(in, shape),
                           tensors.outs_of(out, shape), tensors.sums_of(lse, shape),
                           tensors.outs_of(dout, shape), tensors.rows_of<void>(gradients, shape),
                           tensors.sums_of(scratch, shape)});
  for (const Tensor& each : {gradients.queries, gradients.keys, gradients.values})
    raise_largest(each);
}

}  // namespace gxp
