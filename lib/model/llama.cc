// Llama's forward and backward. Its tensors: lib/arch/llama.h.
#include "lib/arch/llama.h"

#include "lib/model/model.h"
#include "lib/model/token_losses.h"
#include "lib/model/views.h"

namespace gxp::llama {
namespace {

class LlamaModel final : public Model {
 public:
  LlamaModel(const Architecture& architecture, Ops& ops)
      : ops_(ops),
        units_(architecture.units),
        s_(architecture.config),
        theta_(architecture.config.rope_theta),
        eps_(float(architecture.config.norm_eps)),
        tied_(architecture.config.tied_head),
        float8_(architecture.float8) {}

  void forward(int unit, const UnitTensors& t) override {
    if (units_[size_t(unit)].kind == UnitKind::kEmbedding)
      ops_.embedding_forward(t.output, t.tokens, t.parameters[kTokenTable], {});
    else
      block_forward(t);
  }

  void recompute(const UnitTensors& t, Recompute what) override { make_saved(t, what); }

  void backward(int unit, const UnitTensors& t, bool accumulate) override {
    if (units_[size_t(unit)].kind == UnitKind::kEmbedding) {
      clear_unless(accumulate || tied_, t.gradients[kTokenTable]);
      ops_.embedding_backward(t.gradients[kTokenTable], {}, t.stream_gradient, t.tokens);
    } else {
      mlp_backward(t, accumulate);
      attention_backward(t, accumulate);
    }
  }

  void loss(const UnitTensors& t, float scale, bool accumulate) override {
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

  void evaluate_loss(const UnitTensors& t) override {
    compute_losses(ops_, t, head_of(t), final_norm(t), t.scratch[kHeadLogits]);
  }

  void logits(const UnitTensors& t) override {
    compute_last_logits(ops_, t, head_of(t), final_norm(t));
  }

 private:
  [[nodiscard]] HeadMatrix head_of(const UnitTensors& t) const {
    if (tied_) return {t.borrowed, t.borrowed_gradient};
    return {t.parameters[kHeadWeight], t.gradients.empty() ? Tensor{} : t.gradients[kHeadWeight]};
  }

  Tensor final_norm(const UnitTensors& t) {
    const Tensor x = matrix(t.input);
    const Tensor normed = t.scratch[kHeadNormed].reshape(x.shape);
    ops_.rmsnorm_forward(normed, t.scratch[kHeadRstd], x, t.parameters[kFinalNormWeight], eps_);
    return normed;
  }

  void clear_unless(bool keep, const Tensor& gradient) {
    if (!keep && is_trained(gradient)) ops_.fill(gradient, 0.0f);
  }

  // y = x W^T [+ residual], for W stored (out, in) at index `weight`.
  void apply(const Tensor& y, const Tensor& x, int weight, const UnitTensors& t,
             const ConstTensor& residual = {}) {
    ops_.matmul(
        y, x, t.parameters[size_t(weight)],
        {.transpose_b = true, .residual = residual, .float8 = operands_of_forward(float8_)});
  }
  // dx = dy W, or added to dx, and dW (+)= dy^T x.
  void apply_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, int weight,
                      const UnitTensors& t, bool accumulate, bool add_dx = false) {
    ops_.linear_backward({.dx = dx,
                          .dweight = t.gradients[size_t(weight)],
                          .dout = dy,
                          .in = x,
                          .weight = t.parameters[size_t(weight)],
                          .accumulate = accumulate,
                          .outputs_first = true,
                          .add_dx = add_dx,
                          .float8 = float8_});
  }
  // stream += gradient through the norm whose weight is at index `weight`.
  void norm_backward(const Tensor& stream, const Tensor& dout, const Tensor& x, const Tensor& rstd,
                     int weight, const UnitTensors& t, bool accumulate) {
    const Tensor dweight = t.gradients[size_t(weight)];
    clear_unless(accumulate, dweight);
    ops_.rmsnorm_backward(stream, dweight, dout, x, rstd, t.parameters[size_t(weight)]);
  }

  // (B, T, columns) of a flat tensor, and (N, columns).
  static Tensor rows_of(const UnitTensors& t, const Tensor& tensor, size_t columns) {
    return tensor.reshape({t.input.shape[0], t.input.shape[1], columns});
  }
  static Tensor matrix_of(const UnitTensors& t, const Tensor& tensor, size_t columns) {
    return tensor.reshape({t.input.shape.rows(), columns});
  }
  [[nodiscard]] Tensor per_head(const UnitTensors& t, const Tensor& tensor) const {
    return tensor.reshape({t.input.shape[0], s_.heads, t.input.shape[1]});
  }
  template <class AnyTensor>
  [[nodiscard]] GroupedHeads<AnyTensor> heads_of(const UnitTensors& t, const Tensor& queries,
                                                 const Tensor& keys, const Tensor& values) const {
    return {rows_of(t, queries, s_.query_channels()), rows_of(t, keys, s_.key_channels()),
            rows_of(t, values, s_.key_channels()), int(s_.heads), int(s_.kv_heads)};
  }

  // residual = x + attention(norm(x)); out = residual + down(silu(gate) * up) of norm(residual)
  void block_forward(const UnitTensors& t) {
    const Tensor activated = matrix_of(t, t.scratch[kActivated], s_.mlp_hidden);
    make_saved(t, Recompute::kFull);
    ops_.swiglu_forward(activated, matrix_of(t, t.saved[kGate], s_.mlp_hidden),
                        matrix_of(t, t.saved[kUp], s_.mlp_hidden));
    apply(matrix(t.output), activated, kDownWeight, t,
          t.saved[kResidual].reshape(matrix(t.input).shape));
  }

  // All of a block's saved activations that `what` does not keep.
  void make_saved(const UnitTensors& t, Recompute what) {
    const Tensor x = matrix(t.input);
    const Tensor normed = t.scratch[kNormed].reshape(x.shape);
    const Tensor residual = t.saved[kResidual].reshape(x.shape);
    ops_.rmsnorm_forward(normed, t.saved[kRstd1], x, t.parameters[kNorm1Weight], eps_);
    attend(t, normed, what);
    apply(residual, matrix_of(t, t.saved[kAttention], s_.query_channels()), kOutputWeight, t, x);

    ops_.rmsnorm_forward(normed, t.saved[kRstd2], residual, t.parameters[kNorm2Weight], eps_);
    apply(matrix_of(t, t.saved[kGate], s_.mlp_hidden), normed, kGateWeight, t);
    apply(matrix_of(t, t.saved[kUp], s_.mlp_hidden), normed, kUpWeight, t);
  }

  void attend(const UnitTensors& t, const Tensor& normed, Recompute what) {
    const auto in = heads_of<Tensor>(t, t.saved[kQuery], t.saved[kKey], t.saved[kValue]);
    apply(matrix(in.queries), normed, kQueryWeight, t);
    apply(matrix(in.keys), normed, kKeyWeight, t);
    apply(matrix(in.values), normed, kValueWeight, t);
    ops_.rope_forward(in.queries, int(s_.head_size), theta_);
    ops_.rope_forward(in.keys, int(s_.head_size), theta_);
    if (what != Recompute::kFull) return;
    ops_.grouped_attention_forward(rows_of(t, t.saved[kAttention], s_.query_channels()),
                                   per_head(t, t.saved[kLse]),
                                   {in.queries, in.keys, in.values, in.heads, in.kv_heads});
  }

  void mlp_backward(const UnitTensors& t, bool accumulate) {
    const Tensor stream = matrix(t.stream_gradient);
    const Tensor residual = t.saved[kResidual].reshape(stream.shape);
    const Tensor normed = t.scratch[kNormedAgain].reshape(stream.shape);
    const Tensor dnormed = t.scratch[kBranchGradient].reshape(stream.shape);
    const Tensor gate = matrix_of(t, t.saved[kGate], s_.mlp_hidden);
    const Tensor up = matrix_of(t, t.saved[kUp], s_.mlp_hidden);

    down_backward(t, accumulate);
    ops_.rmsnorm_apply(normed, residual, t.saved[kRstd2], t.parameters[kNorm2Weight]);
    apply_backward(dnormed, gate, normed, kGateWeight, t, accumulate);
    apply_backward(dnormed, up, normed, kUpWeight, t, accumulate, true);
    norm_backward(stream, dnormed, residual, t.saved[kRstd2], kNorm2Weight, t, accumulate);
  }

  // Gate and up become their gradients.
  void down_backward(const UnitTensors& t, bool accumulate) {
    const Tensor stream = matrix(t.stream_gradient);
    const Tensor hidden = matrix_of(t, t.scratch[kHiddenGradient], s_.mlp_hidden);
    const Float8 gradient = float8_ ? Float8::kE5M2 : Float8::kNone;
    const Float8 value = float8_ ? Float8::kE4M3 : Float8::kNone;
    ops_.matmul(hidden, stream, t.parameters[kDownWeight], {.float8 = {gradient, value}});
    ops_.swiglu_backward(hidden, matrix_of(t, t.saved[kGate], s_.mlp_hidden),
                         matrix_of(t, t.saved[kUp], s_.mlp_hidden));
    const Tensor& activated = hidden;  // from here on
    if (is_trained(t.gradients[kDownWeight]))
      ops_.matmul(t.gradients[kDownWeight], stream, activated,
                  {.transpose_a = true, .accumulate = accumulate, .float8 = {gradient, value}});
  }

  void attention_backward(const UnitTensors& t, bool accumulate) {
    const Tensor stream = matrix(t.stream_gradient);
    const Tensor x = matrix(t.input);
    const Tensor attention = rows_of(t, t.saved[kAttention], s_.query_channels());
    const Tensor dattention = rows_of(t, t.scratch[kAttentionGradient], s_.query_channels());
    const auto gradients = heads_of<Tensor>(t, t.scratch[kQueryGradient], t.scratch[kKeyGradient],
                                            t.scratch[kValueGradient]);

    apply_backward(matrix(dattention), stream, matrix(attention), kOutputWeight, t, accumulate);
    ops_.grouped_attention_backward(
        gradients, per_head(t, t.scratch[kRowSums]), dattention,
        heads_of<ConstTensor>(t, t.saved[kQuery], t.saved[kKey], t.saved[kValue]), attention,
        per_head(t, t.saved[kLse]));
    ops_.rope_backward(gradients.queries, int(s_.head_size), theta_);
    ops_.rope_backward(gradients.keys, int(s_.head_size), theta_);

    const Tensor normed = t.scratch[kNormedAgain].reshape(x.shape);
    const Tensor dnormed = t.scratch[kBranchGradient].reshape(x.shape);
    ops_.rmsnorm_apply(normed, x, t.saved[kRstd1], t.parameters[kNorm1Weight]);
    apply_backward(dnormed, matrix(gradients.queries), normed, kQueryWeight, t, accumulate);
    apply_backward(dnormed, matrix(gradients.keys), normed, kKeyWeight, t, accumulate, true);
    apply_backward(dnormed, matrix(gradients.values), normed, kValueWeight, t, accumulate, true);
    norm_backward(stream, dnormed, x, t.saved[kRstd1], kNorm1Weight, t, accumulate);
  }

  Ops& ops_;
  const std::vector<UnitSpec> units_;
  const Sizes s_;
  const double theta_;
  const float eps_;
  const bool tied_;
  const bool float8_;
};

}  // namespace
}  // namespace gxp::llama

namespace gxp {

std::unique_ptr<Model> make_llama_model(const Architecture& architecture, Ops& ops) {
  return std::make_unique<llama::LlamaModel>(architecture, ops);
}

}  // namespace gxp
