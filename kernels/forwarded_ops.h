// Operations that are carried out by other operations, all in the same way.
#pragma once

#include "kernels/elementwise.h"
#include "kernels/ops.h"
#include "kernels/ops_call.h"

namespace gxp {

// Every operation but apply_all() and adamw_packed() is carry_out(call, &Ops::OPERATION, arguments...) of How, a class
// derived from this.
template <class How>
class ForwardedOps : public Ops {
 public:
  void matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) override {
    return run(call_of(options), &Ops::matmul, out, a, b, options);
  }
  void round_and_sum(const StreamOutputs& out, ConstTensor x) override {
    return run(call_of(out), &Ops::round_and_sum, out, x);
  }
  void linear_gelu(const LinearGelu& layer) override {
    return run(OpsCall::kProduct, &Ops::linear_gelu, layer);
  }
  void linear_backward(const LinearBackward& layer) override {
    return run(OpsCall::kProduct, &Ops::linear_backward, layer);
  }
  void apply(const ElementwiseCall& call) override { return run(call_of(call), &Ops::apply, call); }
  void rotate(Tensor x, const HeadColumns& heads, const Rotary& rotary, float direction,
              const RotatedPositions& positions) override {
    return run(OpsCall::kRotation, &Ops::rotate, x, heads, rotary, direction, positions);
  }
  void layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x, ConstTensor weight,
                         ConstTensor bias, float eps) override {
    return run(OpsCall::kNorm, &Ops::layernorm_forward, out, mean, rstd, x, weight, bias, eps);
  }
  void layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                       ConstTensor weight, ConstTensor bias) override {
    return run(OpsCall::kNormAgain, &Ops::layernorm_apply, out, x, mean, rstd, weight, bias);
  }
  void layernorm_backward(const NormBackward& norm) override {
    return run(OpsCall::kNormBackward, &Ops::layernorm_backward, norm);
  }
  void rmsnorm_forward(Tensor out, Tensor rstd, ConstTensor x, ConstTensor weight, float eps,
                       RmsWeight form) override {
    return run(OpsCall::kNorm, &Ops::rmsnorm_forward, out, rstd, x, weight, eps, form);
  }
  void rmsnorm_apply(Tensor out, ConstTensor x, ConstTensor rstd, ConstTensor weight,
                     RmsWeight form) override {
    return run(OpsCall::kNormAgain, &Ops::rmsnorm_apply, out, x, rstd, weight, form);
  }
  void rmsnorm_backward(const NormBackward& norm) override {
    return run(OpsCall::kNormBackward, &Ops::rmsnorm_backward, norm);
  }
  void attention_forward(Tensor out, Tensor lse, const GroupedHeads<ConstTensor>& in,
                         const AttentionScores& scores, ConstTensor document_begin) override {
    return run(OpsCall::kAttention, &Ops::attention_forward, out, lse, in, scores, document_begin);
  }
  void attention_cached(Tensor out, const GroupedHeads<ConstTensor>& in, size_t first,
                        const AttentionScores& scores) override {
    return run(OpsCall::kAttention, &Ops::attention_cached, out, in, first, scores);
  }
  void attention_backward(const GroupedHeads<Tensor>& gradients, Tensor scratch, ConstTensor dout,
                          const GroupedHeads<ConstTensor>& in, ConstTensor out, ConstTensor lse,
                          const AttentionScores& scores, ConstTensor document_begin) override {
    return run(OpsCall::kAttentionBackward, &Ops::attention_backward, gradients, scratch, dout, in,
               out, lse, scores, document_begin);
  }
  void embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                         ConstTensor position_table, ConstTensor document_begin) override {
    return run(OpsCall::kEmbedding, &Ops::embedding_forward, out, tokens, token_table,
               position_table, document_begin);
  }
  void embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                          ConstTensor tokens, int padding, ConstTensor document_begin) override {
    return run(OpsCall::kEmbedding, &Ops::embedding_backward, dtoken_table, dposition_table, dout,
               tokens, padding, document_begin);
  }
  void classifier(Tensor logits, Tensor losses, ConstTensor targets, float scale) override {
    return run(OpsCall::kClassifier, &Ops::classifier, logits, losses, targets, scale);
  }
  void classifier_loss(Tensor losses, ConstTensor logits, ConstTensor targets) override {
    return run(OpsCall::kClassifier, &Ops::classifier_loss, losses, logits, targets);
  }
  void sums_of_squares(Tensor of_rows, Tensor of_columns, ConstTensor x) override {
    return run(OpsCall::kPass, &Ops::sums_of_squares, of_rows, of_columns, x);
  }
  void scale_rows_and_columns(Tensor out, ConstTensor x, ConstTensor rows,
                              ConstTensor columns) override {
    return run(OpsCall::kPass, &Ops::scale_rows_and_columns, out, x, rows, columns);
  }
  double sum_of_squares(ConstTensor x) override {
    return run(OpsCall::kPass, &Ops::sum_of_squares, x);
  }
  void add_sum_of_squares(Tensor total, ConstTensor x) override {
    return run(OpsCall::kPass, &Ops::add_sum_of_squares, total, x);
  }
  double sum(ConstTensor x) override { return run(OpsCall::kPass, &Ops::sum, x); }
  uint64_t fingerprint(std::span<const ConstTensor> parts) override {
    return run(OpsCall::kPass, &Ops::fingerprint, parts);
  }
  void convert(Tensor out, ConstTensor x) override {
    return run(OpsCall::kPass, &Ops::convert, out, x);
  }
  void round_stochastically(Tensor out, ConstTensor x, const RandomBits& bits) override {
    return run(OpsCall::kPass, &Ops::round_stochastically, out, x, bits);
  }
  void drop_out(Tensor out, ConstTensor x, const Dropout& dropout) override {
    return run(OpsCall::kPass, &Ops::drop_out, out, x, dropout);
  }

 private:
  template <class... Arguments>
  auto run(OpsCall call, const Arguments&... arguments) {
    return static_cast<How*>(this)->carry_out(call, arguments...);
  }
};

}  // namespace gxp
