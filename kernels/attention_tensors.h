// From the tensors of an attention operation, with all shapes and types asserted, to its kernels'
// arguments. `space`: where every tensor must lie.
#pragma once

#include "kernels/attention_args.h"
#include "kernels/ops.h"

namespace gxp {

struct AttentionResults {
  const Tensor& out;
  const Tensor& lse;
};
AttentionForward attention_args(MemorySpace space, const AttentionResults& results,
                                const ConstTensor& qkv, int heads);
AttentionForward attention_args(MemorySpace space, const AttentionResults& results,
                                const GroupedHeads<ConstTensor>& in);

// What backward takes beside its heads; `delta` is written.
struct AttentionKept {
  const Tensor& delta;
  const ConstTensor& dout;
  const ConstTensor& out;
  const ConstTensor& lse;
};
AttentionBackward attention_args(MemorySpace space, const Tensor& dqkv, const AttentionKept& kept,
                                 const ConstTensor& qkv, int heads);
AttentionBackward attention_args(MemorySpace space, const GroupedHeads<Tensor>& gradients,
                                 const AttentionKept& kept, const GroupedHeads<ConstTensor>& in);

}  // namespace gxp
