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

// A LayerNorm: its input (N, C), the statistics of it, and the index of its weight, which its bias
// follows.
struct Norm {
  Tensor x;
  Tensor mean;
  Tensor rstd;
  int weight;
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

  void backward(int unit, const UnitTensors& t) override {
    if (units_[size_t(unit)].kind == UnitKind::kEmbedding) {
      if (!t.accumulate) clear({t.gradients[kPositionTable]});
      ops_.embedding_backward(t.gradients[kTokenTable], t.gradients[kPositionTable],
                              t.stream_gradient, t.tokens);
    } else {
      mlp_backward(t);
      attention_backward(t);
    }
  }

  void loss(const UnitTensors& t, float scale) override {
    const Norm norm{matrix(t.input), t.scratch[kLossMean], t.scratch[kLossRstd], kFinalNormWeight};
    const Tensor normed = as(t.scratch[kLossNormed], norm.x.shape);
    const Tensor dnormed = as(t.scratch[kNormedGradient], norm.x.shape);
    norm_forward(normed, norm, t);
    differentiate_losses(ops_, t,
                         {.weight = t.borrowed,
                          .weight_gradient = t.borrowed_gradient,
                          .normed = normed,
                          .dnormed = dnormed,
                          .logits = t.scratch[kLossLogits]},
                         scale);
    ops_.fill(matrix(t.stream_gradient), 0.0f);
    norm_backward(dnormed, norm, t);
  }

  void evaluate_loss(const UnitTensors& t) override {
    compute_losses(
        ops_, t, {.weight = t.borrowed, .normed = final_norm(t), .logits = t.scratch[kHeadLogits]});
  }

  void logits(const UnitTensors& t) override {
    compute_last_logits(ops_, t, {.weight = t.borrowed, .normed = final_norm(t)});
  }

 private:
  static Tensor as(const Tensor& tensor, const Shape& shape) { return tensor.reshape(shape); }
  static Linear linear(const UnitTensors& t, int weight) {
    return {t.parameters[size_t(weight)], t.parameters[size_t(weight) + 1],
            t.codes_of(size_t(weight))};
  }

  void clear(std::initializer_list<Tensor> gradients) {
    for (const Tensor& gradient : gradients) {
      if (is_trained(gradient)) ops_.fill(gradient, 0.0f);
    }
  }

  void norm_forward(const Tensor& out, const Norm& norm, const UnitTensors& t) {
    ops_.layernorm_forward(out, norm.mean, norm.rstd, norm.x, t.parameters[size_t(norm.weight)],
                           t.parameters[size_t(norm.weight) + 1], eps_);
  }

  Tensor final_norm(const UnitTensors& t) {
    const Norm norm{matrix(t.input), t.scratch[kHeadMean], t.scratch[kHeadRstd], kFinalNormWeight};
    const Tensor normed = as(t.scratch[kHeadNormed], norm.x.shape);
    norm_forward(normed, norm, t);
    return normed;
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

  // What a layer that wrote into the stream needs of the stream's complete gradient: its bias's
  // gradient, and the stream's rounded for its products.
  StreamOutputs outputs_for(int weight, const UnitTensors& t) {
    const Tensor dbias = t.gradients[size_t(weight) + 1];
    if (!t.accumulate) clear({dbias});
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
                      const UnitTensors& t) {
    const bool of_gelu = weight == kMlpProjectionWeight;  // x is the GELU's argument
    const Tensor dbias = writes_stream(weight) ? Tensor{} : t.gradients[size_t(weight) + 1];
    ops_.linear_backward({.dx = dx,
                          .dweight = t.gradients[size_t(weight)],
                          .dbias = dbias,
                          .dout = dy,
                          .in = x,
                          .weight = t.parameters[size_t(weight)],
                          .of_gelu = of_gelu,
                          .activated = of_gelu ? kept_activated(t) : Tensor(),
                          .accumulate = t.accumulate,
                          .float8 = float8_,
                          .codes = t.codes_of(size_t(weight))});
  }

  // The stream's gradient += that through the norm.
  void norm_backward(const Tensor& dout, const Norm& norm, const UnitTensors& t,
                     const StreamOutputs& also = {}) {
    const Tensor dweight = t.gradients[size_t(norm.weight)];
    const Tensor dbias = t.gradients[size_t(norm.weight) + 1];
    if (!t.accumulate) clear({dweight, dbias});
    ops_.layernorm_backward({.dx = matrix(t.stream_gradient),
                             .dweight = dweight,
                             .dbias = dbias,
                             .dout = dout,
                             .x = norm.x,
                             .mean = norm.mean,
                             .rstd = norm.rstd,
                             .weight = t.parameters[size_t(norm.weight)],
                             .also = also});
  }

  // The two norms of a block.
  static Norm norm1(const UnitTensors& t) {
    return {matrix(t.input), t.saved[kMean1], t.saved[kRstd1], kNorm1Weight};
  }
  static Norm norm2(const UnitTensors& t) {
    return {as(t.saved[kResidual], matrix(t.input).shape), t.saved[kMean2], t.saved[kRstd2],
            kNorm2Weight};
  }

  // The output of a norm and its place among the operands.
  static Tensor normed(BlockSaved output, const UnitTensors& t) {
    return t.operand(t.normed(output), output == kNormed1 ? kOfNormed1 : kOfNormed2);
  }

  // The norm's output, which is made again unless forward has kept it.
  Tensor norm_again(BlockSaved output, const Norm& norm, const UnitTensors& t) {
    if (!t.keeps(output))
      ops_.layernorm_apply(t.normed(output), norm.x, norm.mean, norm.rstd,
                           t.parameters[size_t(norm.weight)],
                           t.parameters[size_t(norm.weight) + 1]);
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
    norm_forward(normed1, norm1(t), t);
    apply(as(t.saved[kQkv], {tokens, 3 * c}), normed1, linear(t, kQkvWeight));
    if (what == Recompute::kFull)
      ops_.attention_forward(as(attention, t.input.shape), lse_of(t), qkv_of(t, t.saved[kQkv]),
                             heads_);
    apply(residual, attention, linear(t, kAttentionProjectionWeight), x);

    const Tensor normed2 = normed(kNormed2, t);
    norm_forward(normed2, norm2(t), t);
    const Linear fc = linear(t, kFcWeight);
    ops_.linear_gelu({.activated = activated,
                      .x = as(t.saved[kFc], {tokens, 4 * c}),
                      .in = normed2,
                      .weight = fc.weight,
                      .bias = fc.bias,
                      .float8 = float8_,
                      .codes = fc.codes});
  }

  void mlp_backward(const UnitTensors& t) {
    const size_t tokens = t.input.shape.rows();
    const Norm norm = norm2(t);
    const Tensor fc = t.operand(as(t.saved[kFc], {tokens, 4 * hidden_}), kOfActivatedAgain);
    const Tensor dfc =
        t.operand(as(t.scratch[kHiddenGradient], {tokens, 4 * hidden_}), kOfHiddenGradient);
    const Tensor dnormed = as(t.scratch[kBranchGradient], norm.x.shape);

    ops_.round_and_sum(outputs_for(kMlpProjectionWeight, t), matrix(t.stream_gradient));
    // GELU's output, unless it is kept, is made again in place of its input, which nothing needs
    // afterwards.
    apply_backward(dfc, stream_dout(kMlpProjectionWeight, t), fc, kMlpProjectionWeight, t);
    apply_backward(dnormed, dfc, norm_again(kNormed2, norm, t), kFcWeight, t);
    norm_backward(dnormed, norm, t, outputs_for(kAttentionProjectionWeight, t));
  }

  void attention_backward(const UnitTensors& t) {
    const Norm norm = norm1(t);
    const Shape stream = norm.x.shape;
    const Tensor attention = t.operand(as(t.saved[kAttention], stream), kOfAttention);
    const Tensor branch = as(t.scratch[kBranchGradient], stream);
    const Tensor dqkv = t.operand(t.scratch[kQkvGradient], kOfQkvGradient);

    apply_backward(branch, stream_dout(kAttentionProjectionWeight, t), attention,
                   kAttentionProjectionWeight, t);
    const Tensor row_sums =
        as(t.scratch[kRowSums], {t.input.shape[0], size_t(heads_), t.input.shape[1]});
    ops_.attention_backward(qkv_of(t, dqkv), row_sums, as(branch, t.input.shape),
                            qkv_of(t, t.saved[kQkv]), as(attention, t.input.shape), lse_of(t),
                            heads_);
    apply_backward(branch, as(dqkv, {t.input.shape.rows(), 3 * hidden_}),
                   norm_again(kNormed1, norm, t), kQkvWeight, t);
    norm_backward(branch, norm, t);
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
