#include "kernels/cpu/attention/cpu_attention.h"

#include "kernels/attention_tensors.h"

namespace gxp {

void CpuAttention::forward(const Tensor& out, const Tensor& lse, const ConstTensor& qkv,
                           int heads) {
  run_forward(attention_args(MemorySpace::kHost, {out, lse}, qkv, heads));
}

void CpuAttention::forward(const Tensor& out, const Tensor& lse,
                           const GroupedHeads<ConstTensor>& in) {
  run_forward(attention_args(MemorySpace::kHost, {out, lse}, in));
}

void CpuAttention::backward(const Tensor& dqkv, const Tensor& delta, const ConstTensor& dout,
                            const ConstTensor& qkv, const ConstTensor& out, const ConstTensor& lse,
                            int heads) {
  run_backward(attention_args(MemorySpace::kHost, dqkv, {delta, dout, out, lse}, qkv, heads));
}

void CpuAttention::backward(const GroupedHeads<Tensor>& gradients, const Tensor& delta,
                            const ConstTensor& dout, const GroupedHeads<ConstTensor>& in,
                            const ConstTensor& out, const ConstTensor& lse) {
  run_backward(attention_args(MemorySpace::kHost, gradients, {delta, dout, out, lse}, in));
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

void CpuAttention::run_forward(const AttentionForward& args) {
  for_each(args.shape.batch * args.shape.heads, attention_scratch_floats(args.shape),
           [&](size_t pair, float* scratch) { kernels_.forward(args, pair, scratch); });
}

void CpuAttention::run_backward(const AttentionBackward& args) {
  for_each(args.shape.batch * args.shape.kv_heads, attention_scratch_floats(args.shape),
           [&](size_t group, float* scratch) { kernels_.backward(args, group, scratch); });
}

}  // namespace gxp
