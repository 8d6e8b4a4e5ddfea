// Operations that every backend hands on to a part of its own, by their names.
#pragma once

#include "kernels/ops.h"

namespace gxp {

// Backend has norms_, attention_ and updates_, and makes this a friend.
template <class Backend>
class OpsOfParts : public Ops {
 public:
  void layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x, ConstTensor weight,
                         ConstTensor bias, float eps) override {
    self().norms_.layernorm_forward(out, mean, rstd, x, weight, bias, eps);
  }
  void layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                       ConstTensor weight, ConstTensor bias) override {
    self().norms_.layernorm_apply(out, x, mean, rstd, weight, bias);
  }
  void layernorm_backward(Tensor dx, Tensor dweight, Tensor dbias, ConstTensor dout, ConstTensor x,
                          ConstTensor mean, ConstTensor rstd, ConstTensor weight) override {
    self().norms_.layernorm_backward(dx, dweight, dbias, dout, x, mean, rstd, weight);
  }
  void rmsnorm_forward(Tensor out, Tensor rstd, ConstTensor x, ConstTensor weight,
                       float eps) override {
    self().norms_.rmsnorm_forward(out, rstd, x, weight, eps);
  }
  void rmsnorm_apply(Tensor out, ConstTensor x, ConstTensor rstd, ConstTensor weight) override {
    self().norms_.rmsnorm_apply(out, x, rstd, weight);
  }
  void rmsnorm_backward(Tensor dx, Tensor dweight, ConstTensor dout, ConstTensor x,
                        ConstTensor rstd, ConstTensor weight) override {
    self().norms_.rmsnorm_backward(dx, dweight, dout, x, rstd, weight);
  }

  void attention_forward(Tensor out, Tensor lse, ConstTensor qkv, int heads) override {
    self().attention_.forward(out, lse, qkv, heads);
  }
  void attention_backward(Tensor dqkv, Tensor scratch, ConstTensor dout, ConstTensor qkv,
                          ConstTensor out, ConstTensor lse, int heads) override {
    self().attention_.backward(dqkv, scratch, dout, qkv, out, lse, heads);
  }
  void grouped_attention_forward(Tensor out, Tensor lse,
                                 const GroupedHeads<ConstTensor>& in) override {
    self().attention_.forward(out, lse, in);
  }
  void grouped_attention_backward(const GroupedHeads<Tensor>& gradients, Tensor scratch,
                                  ConstTensor dout, const GroupedHeads<ConstTensor>& in,
                                  ConstTensor out, ConstTensor lse) override {
    self().attention_.backward(gradients, scratch, dout, in, out, lse);
  }

  void adamw(Tensor weights, Tensor first, Tensor second, ConstTensor gradients,
             const AdamWStep& step) override {
    self().updates_.adamw(weights, first, second, gradients, step);
  }
  void sgd(Tensor weights, Tensor momentum, ConstTensor gradients, const SgdStep& step) override {
    self().updates_.sgd(weights, momentum, gradients, step);
  }
  void lion(Tensor weights, Tensor momentum, ConstTensor gradients, const LionStep& step) override {
    self().updates_.lion(weights, momentum, gradients, step);
  }
  void momentum(Tensor direction, Tensor momentum, ConstTensor gradients,
                const MomentumStep& step) override {
    self().updates_.momentum(direction, momentum, gradients, step);
  }
  void sums_of_squares(Tensor of_rows, Tensor of_columns, ConstTensor x) override {
    self().updates_.sums_of_squares(of_rows, of_columns, x);
  }
  void scale_rows_and_columns(Tensor out, ConstTensor x, ConstTensor rows,
                              ConstTensor columns) override {
    self().updates_.scale_rows_and_columns(out, x, rows, columns);
  }

 private:
  Backend& self() { return static_cast<Backend&>(*this); }
};

}  // namespace gxp
