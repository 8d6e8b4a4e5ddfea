#include "lib/model/llama.h"

namespace gxp {
namespace llama {

void LlamaModel::forward(int unit, const UnitTensors& t) {
  if (units_[size_t(unit)].kind == UnitKind::kEmbedding)
    ops_.embedding_forward(t.output, t.tokens, t.parameters[kTokenTable], {});
  else
    block_forward(t);
}

void LlamaModel::backward(int unit, const UnitTensors& t, bool accumulate) {
  if (units_[size_t(unit)].kind == UnitKind::kEmbedding) {
    clear_unless(accumulate || tied_, t.gradients[kTokenTable]);
    ops_.embedding_backward(t.gradients[kTokenTable], {}, t.stream_gradient, t.tokens);
  } else {
    mlp_backward(t, accumulate);
    attention_backward(t, accumulate);
  }
}

void LlamaModel::loss(const UnitTensors& t, float scale, bool accumulate) {
  const Tensor x = matrix(t.input);
  const Tensor normed = t.scratch[kLossNormed].reshape(x.shape);
  const Tensor dnormed = t.scratch[kNormedGradient].reshape(x.shape);
  const Tensor rstd = t.scratch[kLossRstd];
  ops_.rmsnorm_forward(normed, rstd, x, t.parameters[kFinalNormWeight], eps_);
  differentiate_losses(ops_, t, head_of(t), normed, dnormed, t.scratch[kLossLogits],
                       {scale, accumulate});
  const Tensor dx = matrix(t.stream_gradient);
  ops_.fill(dx, 0.0f);
  norm_backward(dx, dnormed, x, rstd, kFinalNormWeight, t, accumulate);
}

HeadMatrix LlamaModel::head_of(const UnitTensors& t) const {
  if (tied_) return {t.borrowed, t.borrowed_gradient};
  return {t.parameters[kHeadWeight], t.gradients.empty() ? Tensor{} : t.gradients[kHeadWeight]};
}

Tensor LlamaModel::final_norm(const UnitTensors& t) {
  const Tensor x = matrix(t.input);
  const Tensor normed = t.scratch[kHeadNormed].reshape(x.shape);
  ops_.rmsnorm_forward(normed, t.scratch[kHeadRstd], x, t.parameters[kFinalNormWeight], eps_);
  return normed;
}

void LlamaModel::apply(const Tensor& y, const Tensor& x, int weight, const UnitTensors& t,
                       const ConstTensor& residual) {
  ops_.matmul(y, x, t.parameters[size_t(weight)],
              {.transpose_b = true,
               .residual = residual,
               .float8 = operands_of_forward(float8_),
               .b_codes = t.codes_of(size_t(weight))});
}

void LlamaModel::apply_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, int weight,
                                const UnitTensors& t, bool accumulate, bool add_dx) {
  ops_.linear_backward({.dx = dx,
                        .dweight = t.gradients[size_t(weight)],
                        .dout = dy,
                        .in = x,
                        .weight = t.parameters[size_t(weight)],
                        .accumulate = accumulate,
                        .outputs_first = true,
                        .add_dx = add_dx,
                        .float8 = float8_,
                        .codes = t.codes_of(size_t(weight))});
}

void LlamaModel::norm_backward(const Tensor& stream, const Tensor& dout, const Tensor& x,
                               const Tensor& rstd, int weight, const UnitTensors& t,
                               bool accumulate, const StreamOutputs& also) {
  const Tensor dweight = t.gradients[size_t(weight)];
  clear_unless(accumulate, dweight);
  ops_.rmsnorm_backward(stream, dweight, dout, x, rstd, t.parameters[size_t(weight)], also);
}

Tensor LlamaModel::norm_again(BlockSaved output, const Tensor& x, const Tensor& rstd, int weight,
                              const UnitTensors& t) {
  if (!t.keeps(output)) ops_.rmsnorm_apply(t.normed(output), x, rstd, t.parameters[size_t(weight)]);
  return normed(output, t);
}

void LlamaModel::block_forward(const UnitTensors& t) {
  if (t.largest.memory.data != nullptr) ops_.fill(t.largest, 0.0f);
  make_saved(t, Recompute::kFull);
  const Tensor activated = t.operand(
      t.keeps(kKeptActivated) ? t.saved[kKeptActivated] : t.scratch[kActivated], kOfActivated);
  if (!t.keeps(kKeptActivated)) activate(t, activated);
  apply(matrix(t.output), matrix_of(t, activated, s_.mlp_hidden), kDownWeight, t,
        t.saved[kResidual].reshape(matrix(t.input).shape));
}

void LlamaModel::activate(const UnitTensors& t, const Tensor& activated) {
  ops_.swiglu_forward(activated, t.saved[kGate], t.saved[kUp]);
}

void LlamaModel::make_saved(const UnitTensors& t, Recompute what) {
  const Tensor x = matrix(t.input);
  const Tensor residual = t.saved[kResidual].reshape(x.shape);
  const Tensor normed1 = normed(kNormed1, t);
  ops_.rmsnorm_forward(normed1, t.saved[kRstd1], x, t.parameters[kNorm1Weight], eps_);
  attend(t, normed1, what);
  const Tensor attention = t.operand(t.saved[kAttention], kOfAttention);
  apply(residual, matrix_of(t, attention, s_.query_channels()), kOutputWeight, t, x);

  const Tensor normed2 = normed(kNormed2, t);
  ops_.rmsnorm_forward(normed2, t.saved[kRstd2], residual, t.parameters[kNorm2Weight], eps_);
  apply(matrix_of(t, t.saved[kGate], s_.mlp_hidden), normed2, kGateWeight, t);
  apply(matrix_of(t, t.saved[kUp], s_.mlp_hidden), normed2, kUpWeight, t);
  if (t.keeps(kKeptActivated)) activate(t, t.operand(t.saved[kKeptActivated], kOfActivated));
}

void LlamaModel::attend(const UnitTensors& t, const Tensor& normed, Recompute what) {
  const auto in = heads_of<Tensor>(t, t.saved[kQuery], t.saved[kKey], t.saved[kValue]);
  make_heads(t, normed, in.queries, in.keys);
  apply(matrix(in.values), normed, kValueWeight, t);
  ops_.rope_forward(in.queries, int(s_.head_size), theta_);
  ops_.rope_forward(in.keys, int(s_.head_size), theta_);
  if (what != Recompute::kFull) return;
  const Tensor attention = t.operand(t.saved[kAttention], kOfAttention);
  ops_.grouped_attention_forward(rows_of(t, attention, s_.query_channels()),
                                 per_head(t, t.saved[kLse]),
                                 {in.queries, in.keys, in.values, in.heads, in.kv_heads});
}

void LlamaModel::make_heads(const UnitTensors& t, const Tensor& normed, const Tensor& queries,
                            const Tensor& keys) {
  apply(matrix(queries), normed, kQueryWeight, t);
  apply(matrix(keys), normed, kKeyWeight, t);
}

LlamaModel::HeadGradients LlamaModel::heads_backward(const UnitTensors& /*t*/,
                                                     const HeadGradients& gradients,
                                                     bool /*accumulate*/) {
  return gradients;
}

void LlamaModel::mlp_backward(const UnitTensors& t, bool accumulate) {
  const Tensor stream = matrix(t.stream_gradient);
  const Tensor residual = t.saved[kResidual].reshape(stream.shape);
  const Tensor dnormed = t.scratch[kBranchGradient].reshape(stream.shape);
  const Tensor gate = t.operand(matrix_of(t, t.saved[kGate], s_.mlp_hidden), kOfGateGradient);
  const Tensor up = t.operand(matrix_of(t, t.saved[kUp], s_.mlp_hidden), kOfUpGradient);

  down_backward(t, gate, up, accumulate);
  const Tensor again = norm_again(kNormed2, residual, t.saved[kRstd2], kNorm2Weight, t);
  apply_backward(dnormed, gate, again, kGateWeight, t, accumulate);
  apply_backward(dnormed, up, again, kUpWeight, t, accumulate, true);
  norm_backward(stream, dnormed, residual, t.saved[kRstd2], kNorm2Weight, t, accumulate,
                rounded(kOfAttentionGradient, t));
}

void LlamaModel::down_backward(const UnitTensors& t, const Tensor& gate, const Tensor& up,
                               bool accumulate) {
  const Tensor dout = stream_dout(kOfMlpGradient, t);
  const Tensor hidden = matrix_of(t, t.scratch[kHiddenGradient], s_.mlp_hidden);
  const Float8Operands float8 = operands_of_backward(float8_);
  ops_.round_and_sum(rounded(kOfMlpGradient, t), matrix(t.stream_gradient));
  ops_.matmul(hidden, dout, t.parameters[kDownWeight],
              {.float8 = float8, .b_codes = t.codes_of(kDownWeight)});
  const bool is_kept = t.keeps(kKeptActivated);
  const Tensor activated =
      is_kept ? t.operand(matrix_of(t, t.saved[kKeptActivated], s_.mlp_hidden), kOfActivated)
              : t.operand(hidden, kOfActivatedAgain);
  if (is_kept)
    ops_.swiglu_gradients(gate, up, hidden);
  else
    ops_.swiglu_backward(activated, gate, up);
  if (is_trained(t.gradients[kDownWeight]))
    ops_.matmul(t.gradients[kDownWeight], dout, activated,
                {.transpose_a = true, .accumulate = accumulate, .float8 = float8});
}

void LlamaModel::attention_backward(const UnitTensors& t, bool accumulate) {
  const Tensor stream = matrix(t.stream_gradient);
  const Tensor x = matrix(t.input);
  const Tensor attention =
      t.operand(rows_of(t, t.saved[kAttention], s_.query_channels()), kOfAttention);
  const Tensor dattention = rows_of(t, t.scratch[kAttentionGradient], s_.query_channels());
  auto gradients = heads_of<Tensor>(t, t.scratch[kQueryGradient], t.scratch[kKeyGradient],
                                    t.operand(t.scratch[kValueGradient], kOfValueGradient));

  apply_backward(matrix(dattention), stream_dout(kOfAttentionGradient, t), matrix(attention),
                 kOutputWeight, t, accumulate);
  ops_.grouped_attention_backward(
      gradients, per_head(t, t.scratch[kRowSums]), dattention,
      heads_of<ConstTensor>(t, t.saved[kQuery], t.saved[kKey], t.saved[kValue]), attention,
      per_head(t, t.saved[kLse]));
  gradients.queries = t.operand(gradients.queries, kOfQueryGradient);
  gradients.keys = t.operand(gradients.keys, kOfKeyGradient);
  ops_.rope_backward(gradients.queries, int(s_.head_size), theta_);
  ops_.rope_backward(gradients.keys, int(s_.head_size), theta_);

  const HeadGradients products = heads_backward(t, {gradients.queries, gradients.keys}, accumulate);

  const Tensor again = norm_again(kNormed1, x, t.saved[kRstd1], kNorm1Weight, t);
  const Tensor dnormed = t.scratch[kBranchGradient].reshape(x.shape);
  apply_backward(dnormed, matrix(products.queries), again, kQueryWeight, t, accumulate);
  apply_backward(dnormed, matrix(products.keys), again, kKeyWeight, t, accumulate, true);
  apply_backward(dnormed, matrix(gradients.values), again, kValueWeight, t, accumulate, true);
  norm_backward(stream, dnormed, x, t.saved[kRstd1], kNorm1Weight, t, accumulate);
}

}  // namespace llama

std::unique_ptr<Model> make_llama_model(const Architecture& architecture, Ops& ops) {
  return std::make_unique<llama::LlamaModel>(architecture, ops);
}

}  // namespace gxp
