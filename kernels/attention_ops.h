// The attention operations of kernels/ops.h as one form for kernels.
#pragma once

#include "kernels/attention_args.h"
#include "kernels/ops.h"

namespace gxp {

// Asserts all shapes and types, and that every tensor is in the backend's memory.
class AttentionOps : public virtual Ops {
 public:
  explicit AttentionOps(MemorySpace space) : space_(space) {}

  void attention_forward(Tensor out, Tensor lse, const GroupedHeads<ConstTensor>& in,
                         const AttentionScores& scores, ConstTensor document_begin) override;
  void attention_cached(Tensor out, const GroupedHeads<ConstTensor>& in, size_t first,
                        const AttentionScores& scores) override;
  void attention_backward(const GroupedHeads<Tensor>& gradients, Tensor scratch, ConstTensor dout,
                          const GroupedHeads<ConstTensor>& in, ConstTensor out, ConstTensor lse,
                          const AttentionScores& scores, ConstTensor document_begin) override;

 protected:
  virtual void attend(const AttentionForward& args) = 0;
  virtual void attend(const AttentionCached& args) = 0;
  virtual void attend(const AttentionBackward& args) = 0;
  // Sets `largest` of a tensor that was written, if it has one. By default does nothing.
  virtual void raise_largest(const Tensor& /*written*/) {}

 private:
  MemorySpace space_;
};

}  // namespace gxp
