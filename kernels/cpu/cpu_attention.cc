#include "kernels/cpu/cpu_attention.h"

#include <type_traits>

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

// A tensor of `rows` rows of `columns` elements, as they lie in memory.
template <class Element>
Element* elements_of(const ConstTensor& tensor, size_t rows, size_t columns) {
  GXP_ASSERT(tensor.shape.rows() == rows && tensor.shape.columns() == columns);
  return tensor.data<std::remove_const_t<Element>>();
}
template <class Element>
Element* elements_of(const Tensor& tensor, size_t rows, size_t columns) {
  GXP_ASSERT(tensor.shape.rows() == rows && tensor.shape.columns() == columns);
  return tensor.data<Element>();
}

template <class Element, class AnyTensor>
AttentionRows<Element> grouped_rows(const GroupedHeads<AnyTensor>& in,
                                    const AttentionShape& shape) {
  const size_t rows = in.queries.shape.rows();
  const size_t wide = shape.heads * shape.head_size;
  const size_t narrow = shape.kv_heads * shape.head_size;
  GXP_ASSERT(in.keys.dtype == in.queries.dtype && in.values.dtype == in.queries.dtype);
  return {elements_of<Element>(in.queries, rows, wide), elements_of<Element>(in.keys, rows, narrow),
          elements_of<Element>(in.values, rows, narrow), wide, narrow};
}

// Calls act(Element{}) with what elements of `dtype` are in memory.
template <class Act>
void with_element(DType dtype, const Act& act) {
  GXP_ASSERT(dtype == DType::kF32 || is_half(dtype));
  if (dtype == DType::kF32) return act(float{});
  act(uint16_t{});
}

// The arguments of a kernel, for floats or for halves.
template <class Element>
auto forward_args(const AttentionShape& shape, DType dtype, const AttentionRows<const Element>& in,
                  Element* out, float* lse) {
  if constexpr (std::is_same_v<Element, float>) {
    return AttentionForward{shape, in, out, lse};
  } else {
    return HalfAttentionForward{shape, dtype, in, out, lse};
  }
}

// What both forms of backward take beside their heads.
struct BackwardTensors {
  const Tensor& delta;
  const ConstTensor& dout;
  const ConstTensor& out;
  const ConstTensor& lse;
};

template <class Element>
auto backward_args(const AttentionShape& shape, const AttentionRows<const Element>& in,
                   const AttentionRows<Element>& gradients, const BackwardTensors& t) {
  const size_t rows = t.out.shape.rows();
  const size_t channels = shape.heads * shape.head_size;
  GXP_ASSERT(t.dout.dtype == t.out.dtype);
  const auto* const out = elements_of<const Element>(t.out, rows, channels);
  const auto* const dout = elements_of<const Element>(t.dout, rows, channels);
  const float* const lse = vector_of(t.lse, rows * shape.heads);
  float* const delta = vector_of(t.delta, rows * shape.heads);
  if constexpr (std::is_same_v<Element, float>) {
    return AttentionBackward{shape, in, out, lse, dout, gradients, delta};
  } else {
    return HalfAttentionBackward{shape, t.out.dtype, in, out, lse, dout, gradients, delta};
  }
}

}  // namespace

void CpuAttention::forward(const Tensor& out, const Tensor& lse, const ConstTensor& qkv,
                           int heads) {
  const AttentionShape shape = packed_shape(qkv.shape, heads);
  const size_t rows = qkv.shape.rows();
  const size_t channels = shape.heads * shape.head_size;
  GXP_ASSERT(out.dtype == qkv.dtype);
  with_element(qkv.dtype, [&](auto element) {
    using Element = decltype(element);
    const auto in = packed_rows(elements_of<const Element>(qkv, rows, 3 * channels), shape);
    run_forward(forward_args(shape, qkv.dtype, in, elements_of<Element>(out, rows, channels),
                             vector_of(lse, rows * shape.heads)),
                qkv.shape[0]);
  });
}

void CpuAttention::forward(const Tensor& out, const Tensor& lse,
                           const GroupedHeads<ConstTensor>& in) {
  const AttentionShape shape = grouped_shape(in);
  const size_t rows = in.queries.shape.rows();
  GXP_ASSERT(out.dtype == in.queries.dtype);
  with_element(out.dtype, [&](auto element) {
    using Element = decltype(element);
    Element* const to = elements_of<Element>(out, rows, shape.heads * shape.head_size);
    run_forward(forward_args(shape, out.dtype, grouped_rows<const Element>(in, shape), to,
                             vector_of(lse, rows * shape.heads)),
                in.queries.shape[0]);
  });
}

void CpuAttention::backward(const Tensor& dqkv, const Tensor& delta, const ConstTensor& dout,
                            const ConstTensor& qkv, const ConstTensor& out, const ConstTensor& lse,
                            int heads) {
  const AttentionShape shape = packed_shape(qkv.shape, heads);
  const size_t rows = qkv.shape.rows();
  const size_t channels = 3 * shape.heads * shape.head_size;
  GXP_ASSERT(out.dtype == qkv.dtype && dqkv.dtype == qkv.dtype);
  with_element(qkv.dtype, [&](auto element) {
    using Element = decltype(element);
    const auto in = packed_rows(elements_of<const Element>(qkv, rows, channels), shape);
    const auto gradients = packed_rows(elements_of<Element>(dqkv, rows, channels), shape);
    run_backward(backward_args<Element>(shape, in, gradients, {delta, dout, out, lse}),
                 qkv.shape[0]);
  });
}

void CpuAttention::backward(const GroupedHeads<Tensor>& gradients, const Tensor& delta,
                            const ConstTensor& dout, const GroupedHeads<ConstTensor>& in,
                            const ConstTensor& out, const ConstTensor& lse) {
  const AttentionShape shape = grouped_shape(in);
  GXP_ASSERT(out.dtype == in.queries.dtype && gradients.queries.dtype == out.dtype);
  with_element(out.dtype, [&](auto element) {
    using Element = decltype(element);
    run_backward(
        backward_args<Element>(shape, grouped_rows<const Element>(in, shape),
                               grouped_rows<Element>(gradients, shape), {delta, dout, out, lse}),
        in.queries.shape[0]);
  });
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

void CpuAttention::run_forward(const HalfAttentionForward& args, size_t batch) {
  for_each(batch * args.shape.kv_heads, HalfAttention::scratch_floats(args.shape),
           [&](size_t group, float* scratch) { halves_.forward(args, group, scratch); });
}

void CpuAttention::run_backward(const HalfAttentionBackward& args, size_t batch) {
  for_each(batch * args.shape.kv_heads, HalfAttention::scratch_floats(args.shape),
           [&](size_t group, float* scratch) { halves_.backward(args, group, scratch); });
}

}  // namespace gxp
