// The attention operations of kernels/ops.h, packed and grouped, as one form for kernels.
#pragma once

#include "kernels/attention_args.h"
#include "kernels/ops.h"

namespace gxp {

// Asserts all shapes and types, and that every tensor is in the backend's memory.
class AttentionOps : public virtual Ops {
 public:
  explicit AttentionOps(MemorySpace space) : space_(space) {}

  void attention_forward(Tensor out, Tensor lse, ConstTensor qkv, int heads) override;
  void attention_backward(Tensor dqkv, Tensor scratch, ConstTensor dout, ConstTensor qkv,
                          ConstTensor out, ConstTensor lse, int heads) override;
  void grouped_attention_forward(Tensor out, Tensor lse,
                                 const GroupedHeads<ConstTensor>& in) override;
  void grouped_attention_backward(const GroupedHeads<Tensor>& gradients, Tensor scratch,
                                  ConstTensor dout, const GroupedHeads<ConstTensor>& in,
                                  ConstTensor out, ConstTensor lse) override;

 protected:
  virtual void attend(const AttentionForward& args) = 0;
  virtual void attend(const AttentionBackward& args) = 0;
  // Sets `largest` of a tensor that was written, if it has one. By default does nothing.
  virtual void raise_largest(const Tensor& /*written*/) {}

 private:
  MemorySpace space_;
};

}  // namespace gxp
