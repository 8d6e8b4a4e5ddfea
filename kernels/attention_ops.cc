#include "kernels/attention_ops.h"

#include "lib/base/error.h"

namespace gxp {
namespace {

// Heads of queries, keys and values in a row of the queries' array.
template <class AnyTensor>
size_t heads_in_row(const GroupedHeads<AnyTensor>& in) {
  const auto heads = static_cast<size_t>(in.heads);
  if (in.layout == HeadLayout::kSeparate) return heads;
  return heads + 2 * static_cast<size_t>(in.kv_heads);
}

AttentionShape shape_of(const GroupedHeads<ConstTensor>& in) {
  GXP_ASSERT(in.kv_heads > 0 && in.heads > 0 && in.heads % in.kv_heads == 0);
  GXP_ASSERT(in.layout != HeadLayout::kPerHead || in.heads == in.kv_heads);
  const Shape& queries = in.queries.shape;
  const size_t heads = heads_in_row(in);
  GXP_ASSERT(queries.rank() == 3 && queries[2] % heads == 0);
  return {queries[0], queries[1], static_cast<size_t>(in.heads), static_cast<size_t>(in.kv_heads),
          queries[2] / heads};
}

// With the default scale, and without a window that hides nothing.
AttentionScores resolved(AttentionScores scores, const AttentionShape& shape, size_t positions) {
  GXP_ASSERT(scores.scale >= 0 && scores.cap >= 0);
  if (scores.scale == 0) scores.scale = default_scale(shape);
  if (scores.window >= positions) scores.window = 0;
  return scores;
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// One operation's tensors: of `dtype`, f32 or a half type, in `space`.
struct Tensors {
  // The data of a tensor with `columns` of the shape's rows.
  template <class AnyTensor>
  auto data_of(const AnyTensor& tensor, size_t columns) const {
    GXP_ASSERT(tensor.dtype == dtype && is_float(dtype));
    GXP_ASSERT(tensor.memory.space == space);
    GXP_ASSERT(tensor.shape.rows() == shape.batch * shape.positions);
    GXP_ASSERT(tensor.shape.columns() == columns);
    return tensor.memory.data;
  }
  template <class AnyTensor>
  auto outs_of(const AnyTensor& tensor) const {
    return data_of(tensor, shape.heads * shape.head_size);
  }
  // (B, heads, T) f32.
  template <class AnyTensor>
  auto sums_of(const AnyTensor& tensor) const {
    GXP_ASSERT(tensor.dtype == DType::kF32 && tensor.memory.space == space);
    GXP_ASSERT(tensor.count() == shape.batch * shape.heads * shape.positions);
    using Byte = decltype(tensor.memory.data);
    using Float = std::conditional_t<std::is_same_v<Byte, std::byte*>, float*, const float*>;
    return reinterpret_cast<Float>(tensor.memory.data);
  }

  // (B, T) i32, or null where there is none.
  [[nodiscard]] const int32_t* begins_of(const ConstTensor& document_begin) const {
    if (document_begin.memory.data == nullptr) return nullptr;
    GXP_ASSERT(document_begin.dtype == DType::kI32 && document_begin.memory.space == space);
    GXP_ASSERT(document_begin.count() == shape.batch * shape.positions);
    return reinterpret_cast<const int32_t*>(document_begin.memory.data);
  }

  template <class Void, class AnyTensor>
  AttentionRows<Void> rows_of(const GroupedHeads<AnyTensor>& in) const {
    GXP_ASSERT(in.layout == HeadLayout::kSeparate || in.keys.memory.data == in.queries.memory.data);
    return rows_of<Void>(in, *this);
  }
  // `past`: of the keys and values.
  template <class Void, class AnyTensor>
  AttentionRows<Void> rows_of(const GroupedHeads<AnyTensor>& in, const Tensors& past) const {
    const size_t size = shape.head_size, row = heads_in_row(in) * size;
    const auto strides = [&](size_t of_row, size_t of_head) {
      GXP_ASSERT(of_row <= UINT32_MAX);
      return HeadStrides{static_cast<uint32_t>(of_row), static_cast<uint32_t>(of_head)};
    };
    auto* const queries = data_of(in.queries, row);
    if (in.layout == HeadLayout::kSeparate) {
      const size_t narrow = shape.kv_heads * size;
      return {queries, past.data_of(in.keys, narrow), past.data_of(in.values, narrow),
              strides(row, size), strides(narrow, size)};
    }
    GXP_ASSERT(in.values.memory.data == in.keys.memory.data);
    const bool per_head = in.layout == HeadLayout::kPerHead;
    const size_t to_keys = per_head ? size : shape.heads * size;
    const size_t to_values = per_head ? size : shape.kv_heads * size;
    const HeadStrides of_all = strides(row, per_head ? 3 * size : size);
    auto* const keys = past.data_of(in.keys, row) + to_keys * size_of(dtype);
    return {queries, keys, keys + to_values * size_of(dtype), of_all, of_all};
  }

  MemorySpace space;
  DType dtype;
  const AttentionShape& shape;
};

}  // namespace

void AttentionOps::attention_forward(Tensor out, Tensor lse, const GroupedHeads<ConstTensor>& in,
                                     const AttentionScores& scores, ConstTensor document_begin) {
  const AttentionShape shape = shape_of(in);
  const Tensors tensors = {space_, in.queries.dtype, shape};
  attend(AttentionForward{shape, tensors.dtype, resolved(scores, shape, shape.positions),
                          tensors.rows_of<const void>(in), tensors.outs_of(out),
                          tensors.sums_of(lse), tensors.begins_of(document_begin)});
  raise_largest(out);
}

void AttentionOps::attention_cached(Tensor out, const GroupedHeads<ConstTensor>& in, size_t first,
                                    const AttentionScores& scores) {
  const AttentionShape shape = shape_of(in);
  AttentionShape all = shape;
  all.positions = in.keys.shape[1];
  GXP_ASSERT(all.positions >= first + shape.positions);
  const Tensors tensors = {space_, in.queries.dtype, shape};
  const Tensors past = {space_, in.queries.dtype, all};
  attend(AttentionCached{shape, first, all.positions, tensors.dtype,
                         resolved(scores, shape, first + shape.positions),
                         tensors.rows_of<const void>(in, past), tensors.outs_of(out)});
  raise_largest(out);
}

void AttentionOps::attention_backward(const GroupedHeads<Tensor>& gradients, Tensor scratch,
                                      ConstTensor dout, const GroupedHeads<ConstTensor>& in,
                                      ConstTensor out, ConstTensor lse,
                                      const AttentionScores& scores, ConstTensor document_begin) {
  GXP_ASSERT(gradients.heads == in.heads && gradients.kv_heads == in.kv_heads);
  GXP_ASSERT(gradients.layout == in.layout);
  const AttentionShape shape = shape_of(in);
  const Tensors tensors = {space_, in.queries.dtype, shape};
  attend(AttentionBackward{shape, tensors.dtype, resolved(scores, shape, shape.positions),
                           tensors.rows_of<const void>(in), tensors.outs_of(out),
                           tensors.sums_of(lse), tensors.outs_of(dout),
                           tensors.rows_of<void>(gradients), tensors.sums_of(scratch),
                           tensors.begins_of(document_begin)});
  raise_largest(gradients.queries);
  if (in.layout != HeadLayout::kSeparate) return;
  raise_largest(gradients.keys);
  raise_largest(gradients.values);
}

}  // namespace gxp
