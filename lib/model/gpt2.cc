// GPT-2's forward and backward. Its tensors: lib/arch/gpt2.h.
#include "lib/arch/gpt2.h"

#include "lib/model/model.h"
#include "lib/model/token_losses.h"
#include "lib/model/views.h"

namespace gxp::gpt2 {
namespace {

// y = x W + b, for W stored (in, out). x: (N, in), y: (N, out).
struct Linear {
  ConstTensor weight;
  ConstTensor bias;
  KeptCodes codes;
};

class Gpt2Model final : public Model {
 public:
  Gpt2Model(const Architecture& architecture, Ops& ops)
      : ops_(ops),
        units_(architecture.units),
        hidden_(size_t(architecture.config.hidden)),
        heads_(architecture.config.heads),
        eps_(float(architecture.config.norm_eps)),
        float8_(architecture.float8),
        rounds_(architecture.compute != DType::kF32) {}

  void forward(int unit, const UnitTensors& t) override {
    if (units_[size_t(unit)].kind == UnitKind::kEmbedding) {
      ops_.embedding_forward(t.output, t.tokens, t.parameters[kTokenTable],
                             t.parameters[kPositionTable]);
    } else {
      block_forward(t);
    }
  }

  void recompute(const UnitTensors& t, Recompute what) override {
    make_saved(t, what, kept_activated(t));
  }

  void backward(int unit, const UnitTensors& t, bool accumulate) override {
    if (units_[size_t(unit)].kind == UnitKind::kEmbedding) {
      clear_unless(accumulate, {t.gradients[kPositionTable]});
      ops_.embedding_backward(t.gradients[kTokenTable], t.gradients[kPositionTable],
                              t.stream_gradient, t.tokens);
    } else {
      block_backward(t, accumulate);
    }
  }

  void loss(const UnitTensors& t, float scale, bool accumulate) override {
    const size_t tokens = t.input.shape.rows();
    const Tensor x = matrix(t.input);
    const Tensor normed = as(t.scratch[kLossNormed], {tokens, hidden_});
    const Tensor dnormed = as(t.scratch[kNormedGradient], {tokens, hidden_});
    const Tensor mean = t.scratch[kLossMean];
    const Tensor rstd = t.scratch[kLossRstd];
    ops_.layernorm_forward(normed, mean, rstd, x, t.parameters[kFinalNormWeight],
                           t.parameters[kFinalNormBias], eps_);
    differentiate_losses(ops_, t, {t.borrowed, t.borrowed_gradient}, normed, dnormed,
                         t.scratch[kLossLogits], {scale, accumulate});
    clear_unless(accumulate, {t.gradients[kFinalNormWeight], t.gradients[kFinalNormBias]});
    const Tensor dx = matrix(t.stream_gradient);
    ops_.fill(dx, 0.0f);
    ops_.layernorm_backward(dx, t.gradients[kFinalNormWeight], t.gradients[kFinalNormBias], dnormed,
                            x, mean, rstd, t.parameters[kFinalNormWeight]);
  }

  void evaluate_loss(const UnitTensors& t) override {
    const size_t tokens = t.input.shape.rows();
    const Tensor normed = as(t.scratch[kHeadNormed], {tokens, hidden_});
    final_norm(normed, matrix(t.input), t);
    compute_losses(ops_, t, {t.borrowed, {}}, normed, t.scratch[kHeadLogits]);
  }

  void logits(const UnitTensors& t) override {
    const Tensor normed = as(t.scratch[kHeadNormed], {t.input.shape.rows(), hidden_});
    final_norm(normed, matrix(t.input), t);
    compute_last_logits(ops_, t, {t.borrowed, {}}, normed);
  }

 private:
  static Tensor as(const Tensor& tensor, const Shape& shape) { return tensor.reshape(shape); }
  static Linear linear(const UnitTensors& t, int weight) {
    return {t.parameters[size_t(weight)], t.parameters[size_t(weight) + 1],
            t.codes_of(size_t(weight))};
  }

  void clear_unless(bool accumulate, std::initializer_list<Tensor> gradients) {
    if (accumulate) return;
    for (const Tensor& gradient : gradients) {
      if (is_trained(gradient)) ops_.fill(gradient, 0.0f);
    }
  }

  void final_norm(const Tensor& out, const Tensor& x, const UnitTensors& t) {
    ops_.layernorm_forward(out, t.scratch[kHeadMean], t.scratch[kHeadRstd], x,
                           t.parameters[kFinalNormWeight], t.parameters[kFinalNormBias], eps_);
  }

  // y = x W + b [+ residual]
  void apply(const Tensor& y, const Tensor& x, const Linear& layer,
             const ConstTensor& residual = {}) {
    ops_.matmul(y, x, layer.weight,
                {.bias = layer.bias,
                 .residual = residual,
                 .float8 = operands_of_forward(float8_),
                 .b_codes = layer.codes});
  }

  static bool writes_stream(int weight) {
    return weight == kAttentionProjectionWeight || weight == kMlpProjectionWeight;
  }

  // What the layer whose weight is at this index, and which wrote into the stream, takes of the
  // stream's complete gradient; and that gradient as its products take it.
  StreamOutputs outputs_for(int weight, const UnitTensors& t, bool accumulate) {
    const Tensor dbias = t.gradients[size_t(weight) + 1];
    clear_unless(accumulate, {dbias});
    return {.rounded = rounds_ ? stream_dout(weight, t) : Tensor{}, .column_sums = dbias};
  }
  [[nodiscard]] Tensor stream_dout(int weight, const UnitTensors& t) const {
    const Tensor stream = matrix(t.stream_gradient);
    if (!rounds_) return stream;
    return t.operand(as(t.scratch[kRoundedGradient], stream.shape),
                     weight == kMlpProjectionWeight ? kOfMlpGradient : kOfAttentionGradient);
  }

  // dx and the gradients of the layer whose weight is at index `weight` and whose bias is the next;
  // but for the bias of a layer that writes into the stream: outputs_for() has it.
  void apply_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, int weight,
                      const UnitTensors& t, bool accumulate, bool of_gelu = false) {
    const Tensor dbias = writes_stream(weight) ? Tensor{} : t.gradients[size_t(weight) + 1];
    ops_.linear_backward({.dx = dx,
                          .dweight = t.gradients[size_t(weight)],
                          .dbias = dbias,
                          .dout = dy,
                          .in = x,
                          .weight = t.parameters[size_t(weight)],
                          .of_gelu = of_gelu,
                          .activated = of_gelu ? kept_activated(t) : Tensor(),
                          .accumulate = accumulate,
                          .float8 = float8_,
                          .codes = t.codes_of(size_t(weight))});
  }

  // stream += gradient through the norm whose weight is at index `weight`.
  void norm_backward(const Tensor& stream, const Tensor& dout, const Tensor& x, int weight,
                     const UnitTensors& t, const Tensor& mean, const Tensor& rstd, bool accumulate,
                     const StreamOutputs& also = {}) {
    const Tensor dweight = t.gradients[size_t(weight)];
    const Tensor dbias = t.gradients[size_t(weight) + 1];
    clear_unless(accumulate, {dweight, dbias});
    ops_.layernorm_backward(stream, dweight, dbias, dout, x, mean, rstd,
                            t.parameters[size_t(weight)], also);
  }

  // The output of a norm and its place among the operands.
  static Tensor normed(BlockSaved output, const UnitTensors& t) {
    return t.operand(t.normed(output), output == kNormed1 ? kOfNormed1 : kOfNormed2);
  }

  // The norm's output, which is made again unless forward has kept it.
  Tensor norm_again(BlockSaved output, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                    int weight, const UnitTensors& t) {
    if (!t.keeps(output))
      ops_.layernorm_apply(t.normed(output), x, mean, rstd, t.parameters[size_t(weight)],
                           t.parameters[size_t(weight) + 1]);
    return normed(output, t);
  }

  // residual = x + attention(norm(x)); out = residual + mlp(norm(residual))
  void block_forward(const UnitTensors& t) {
    const Tensor activated =
        t.keeps(kKeptActivated)
            ? kept_activated(t)
            : t.operand(as(t.scratch[kActivated], {t.input.shape.rows(), 4 * hidden_}),
                        kOfActivated);
    if (t.largest.memory.data != nullptr) ops_.fill(t.largest, 0.0f);
    make_saved(t, Recompute::kFull, activated);
    apply(matrix(t.output), activated, linear(t, kMlpProjectionWeight),
          as(t.saved[kResidual], matrix(t.input).shape));
  }

  // The GELU's output; empty if it is not kept.
  [[nodiscard]] Tensor kept_activated(const UnitTensors& t) const {
    if (!t.keeps(kKeptActivated)) return {};
    return t.operand(as(t.saved[kKeptActivated], {t.input.shape.rows(), 4 * hidden_}),
                     kOfActivated);
  }

  // Computes a block's saved activations that `what` does not keep; and the GELU's output, unless
  // it is left out.
  void make_saved(const UnitTensors& t, Recompute what, const Tensor& activated) {
    const size_t tokens = t.input.shape.rows();
    const size_t c = hidden_;
    const Tensor x = matrix(t.input);
    const Tensor attention = t.operand(as(t.saved[kAttention], {tokens, c}), kOfAttention);
    const Tensor residual = as(t.saved[kResidual], {tokens, c});

    const Tensor normed1 = normed(kNormed1, t);
    ops_.layernorm_forward(normed1, t.saved[kMean1], t.saved[kRstd1], x, t.parameters[kNorm1Weight],
                           t.parameters[kNorm1Bias], eps_);
    apply(as(t.saved[kQkv], {tokens, 3 * c}), normed1, linear(t, kQkvWeight));
    if (what == Recompute::kFull)
      ops_.attention_forward(as(attention, t.input.shape), lse_of(t), qkv_of(t, t.saved[kQkv]),
                             heads_);
    apply(residual, attention, linear(t, kAttentionProjectionWeight), x);

    const Tensor normed2 = normed(kNormed2, t);
    ops_.layernorm_forward(normed2, t.saved[kMean2], t.saved[kRstd2], residual,
                           t.parameters[kNorm2Weight], t.parameters[kNorm2Bias], eps_);
    const Linear fc = linear(t, kFcWeight);
    ops_.linear_gelu({.activated = activated,
                      .x = as(t.saved[kFc], {tokens, 4 * c}),
                      .in = normed2,
                      .weight = fc.weight,
                      .bias = fc.bias,
                      .float8 = float8_,
                      .codes = fc.codes});
  }

  void block_backward(const UnitTensors& t, bool accumulate) {
    mlp_backward(t, accumulate);
    attention_backward(t, accumulate);
  }

  void mlp_backward(const UnitTensors& t, bool accumulate) {
    const size_t tokens = t.input.shape.rows();
    const size_t c = hidden_;
    const Tensor stream = matrix(t.stream_gradient);
    const Tensor residual = as(t.saved[kResidual], {tokens, c});
    const Tensor fc = t.operand(as(t.saved[kFc], {tokens, 4 * c}), kOfActivatedAgain);
    const Tensor dfc =
        t.operand(as(t.scratch[kHiddenGradient], {tokens, 4 * c}), kOfHiddenGradient);
    const Tensor dnormed = as(t.scratch[kBranchGradient], {tokens, c});

    ops_.round_and_sum(outputs_for(kMlpProjectionWeight, t, accumulate), stream);
    // GELU's output, unless it is kept, is made again in place of its input, which nothing needs
    // afterwards.
    apply_backward(dfc, stream_dout(kMlpProjectionWeight, t), fc, kMlpProjectionWeight, t,
                   accumulate, true);
    const Tensor again =
        norm_again(kNormed2, residual, t.saved[kMean2], t.saved[kRstd2], kNorm2Weight, t);
    apply_backward(dnormed, dfc, again, kFcWeight, t, accumulate);
    norm_backward(stream, dnormed, residual, kNorm2Weight, t, t.saved[kMean2], t.saved[kRstd2],
                  accumulate, outputs_for(kAttentionProjectionWeight, t, accumulate));
  }

  void attention_backward(const UnitTensors& t, bool accumulate) {
    const size_t tokens = t.input.shape.rows();
    const size_t c = hidden_;
    const Tensor stream = matrix(t.stream_gradient);
    const Tensor x = matrix(t.input);
    const Tensor attention = t.operand(as(t.saved[kAttention], {tokens, c}), kOfAttention);
    const Tensor branch = as(t.scratch[kBranchGradient], {tokens, c});
    const Tensor dqkv = t.operand(t.scratch[kQkvGradient], kOfQkvGradient);

    apply_backward(branch, stream_dout(kAttentionProjectionWeight, t), attention,
                   kAttentionProjectionWeight, t, accumulate);
    const Tensor row_sums =
        as(t.scratch[kRowSums], {t.input.shape[0], size_t(heads_), t.input.shape[1]});
    ops_.attention_backward(qkv_of(t, dqkv), row_sums, as(branch, t.input.shape),
                            qkv_of(t, t.saved[kQkv]), as(attention, t.input.shape), lse_of(t),
                            heads_);
    const Tensor again = norm_again(kNormed1, x, t.saved[kMean1], t.saved[kRstd1], kNorm1Weight, t);
    apply_backward(branch, as(dqkv, {tokens, 3 * c}), again, kQkvWeight, t, accumulate);
    norm_backward(stream, branch, x, kNorm1Weight, t, t.saved[kMean1], t.saved[kRstd1], accumulate);
  }

  Tensor qkv_of(const UnitTensors& t, const Tensor& tensor) const {
    return as(tensor, {t.input.shape[0], t.input.shape[1], 3 * hidden_});
  }
  Tensor lse_of(const UnitTensors& t) const {
    return as(t.saved[kLse], {t.input.shape[0], size_t(heads_), t.input.shape[1]});
  }

  Ops& ops_;
  const std::vector<UnitSpec> units_;
  const size_t hidden_;
  const int heads_;
  const float eps_;
  const bool float8_;
  const bool rounds_;  // the stream's gradient, for products
};

}  // namespace
}  // namespace gxp::gpt2

namespace gxp {

std::unique_ptr<Model> make_gpt2_model(const Architecture& architecture, Ops& ops) {
  return std::make_unique<gpt2::Gpt2Model>(architecture, ops);
}

}  // namespace gxp
