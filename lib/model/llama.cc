// Llama's forward and backward. Its tensors: lib/arch/llama.h.
#include "lib/arch/llama.h"

#include <vector>

#include "lib/model/model.h"
#include "lib/model/token_losses.h"
#include "lib/model/views.h"

namespace gxp::llama {
namespace {

// An RMSNorm: its input (N, C), 1 / rms of each row, and the index of its weight.
struct Norm {
  Tensor x;
  Tensor rstd;
  int weight;
};

class LlamaModel final : public Model {
 public:
  LlamaModel(const Architecture& architecture, Ops& ops)
      : ops_(ops),
        units_(architecture.units),
        s_(architecture.config),
        theta_(architecture.config.rope_theta),
        eps_(float(architecture.config.norm_eps)),
        tied_(architecture.config.tied_head),
        float8_(architecture.float8),
        rounds_(architecture.compute != DType::kF32) {}

  void forward(int unit, const UnitTensors& t) override {
    if (units_[size_t(unit)].kind == UnitKind::kEmbedding)
      ops_.embedding_forward(t.output, t.tokens, t.parameters[kTokenTable], {});
    else
      block_forward(t);
  }

  void recompute(const UnitTensors& t, Recompute what) override { make_saved(t, what); }

  void backward(int unit, const UnitTensors& t) override {
    if (units_[size_t(unit)].kind == UnitKind::kEmbedding) {
      if (!t.accumulate && !tied_) clear(t.gradients[kTokenTable]);
      ops_.embedding_backward(t.gradients[kTokenTable], {}, t.stream_gradient, t.tokens);
    } else {
      mlp_backward(t);
      attention_backward(t);
    }
  }

  void loss(const UnitTensors& t, float scale) override {
    const Norm norm{matrix(t.input), t.scratch[kLossRstd], kFinalNormWeight};
    HeadTensors head = head_of(t);
    head.normed = t.scratch[kLossNormed].reshape(norm.x.shape);
    head.dnormed = t.scratch[kNormedGradient].reshape(norm.x.shape);
    head.logits = t.scratch[kLossLogits];
    norm_forward(head.normed, norm, t);
    differentiate_losses(ops_, t, head, scale);
    ops_.fill(matrix(t.stream_gradient), 0.0f);
    norm_backward(head.dnormed, norm, t);
  }

  void evaluate_loss(const UnitTensors& t) override {
    HeadTensors head = head_of(t);
    head.normed = final_norm(t);
    head.logits = t.scratch[kHeadLogits];
    compute_losses(ops_, t, head);
  }

  void logits(const UnitTensors& t) override {
    HeadTensors head = head_of(t);
    head.normed = final_norm(t);
    compute_last_logits(ops_, t, head);
  }

 private:
  [[nodiscard]] HeadTensors head_of(const UnitTensors& t) const {
    if (tied_) return {.weight = t.borrowed, .weight_gradient = t.borrowed_gradient};
    return {.weight = t.parameters[kHeadWeight],
            .weight_gradient = t.gradients.empty() ? Tensor{} : t.gradients[kHeadWeight]};
  }

  Tensor final_norm(const UnitTensors& t) {
    const Norm norm{matrix(t.input), t.scratch[kHeadRstd], kFinalNormWeight};
    const Tensor normed = t.scratch[kHeadNormed].reshape(norm.x.shape);
    norm_forward(normed, norm, t);
    return normed;
  }

  void clear(const Tensor& gradient) {
    if (is_trained(gradient)) ops_.fill(gradient, 0.0f);
  }

  // The two norms of a block.
  static Norm norm1(const UnitTensors& t) {
    return {matrix(t.input), t.saved[kRstd1], kNorm1Weight};
  }
  static Norm norm2(const UnitTensors& t) {
    return {t.saved[kResidual].reshape(matrix(t.input).shape), t.saved[kRstd2], kNorm2Weight};
  }

  void norm_forward(const Tensor& out, const Norm& norm, const UnitTensors& t) {
    ops_.rmsnorm_forward(out, norm.rstd, norm.x, t.parameters[size_t(norm.weight)], eps_);
  }

  // The output of a norm and its place among the operands.
  static Tensor normed(BlockSaved output, const UnitTensors& t) {
    return t.operand(t.normed(output), output == kNormed1 ? kOfNormed1 : kOfNormed2);
  }

  // The norm's output, which is made again unless forward has kept it.
  Tensor norm_again(BlockSaved output, const Norm& norm, const UnitTensors& t) {
    if (!t.keeps(output))
      ops_.rmsnorm_apply(t.normed(output), norm.x, norm.rstd, t.parameters[size_t(norm.weight)]);
    return normed(output, t);
  }

  // The stream's gradient += that through the norm.
  void norm_backward(const Tensor& dout, const Norm& norm, const UnitTensors& t,
                     const StreamOutputs& also = {}) {
    const Tensor dweight = t.gradients[size_t(norm.weight)];
    if (!t.accumulate) clear(dweight);
    ops_.rmsnorm_backward({.dx = matrix(t.stream_gradient),
                           .dweight = dweight,
                           .dout = dout,
                           .x = norm.x,
                           .rstd = norm.rstd,
                           .weight = t.parameters[size_t(norm.weight)],
                           .also = also});
  }

  // y = x W^T [+ residual], for W stored (out, in) at index `weight`.
  void apply(const Tensor& y, const Tensor& x, int weight, const UnitTensors& t,
             const ConstTensor& residual = {}) {
    ops_.matmul(y, x, t.parameters[size_t(weight)],
                {.transpose_b = true,
                 .residual = residual,
                 .float8 = operands_of_forward(float8_),
                 .b_codes = t.codes_of(size_t(weight))});
  }

  // dx = dy W, or added to dx, and dW (+)= dy^T x.
  void apply_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, int weight,
                      const UnitTensors& t, bool add_dx = false) {
    ops_.linear_backward({.dx = dx,
                          .dweight = t.gradients[size_t(weight)],
                          .dout = dy,
                          .in = x,
                          .weight = t.parameters[size_t(weight)],
                          .accumulate = t.accumulate,
                          .outputs_first = true,
                          .add_dx = add_dx,
                          .float8 = float8_,
                          .codes = t.codes_of(size_t(weight))});
  }

  // The complete gradient of the stream as products take it: rounded, unless they are f32.
  [[nodiscard]] Tensor stream_dout(BlockOperand which, const UnitTensors& t) const {
    const Tensor stream = matrix(t.stream_gradient);
    if (!rounds_) return stream;
    return t.operand(t.scratch[kRoundedGradient].reshape(stream.shape), which);
  }
  [[nodiscard]] StreamOutputs rounded(BlockOperand which, const UnitTensors& t) const {
    return {.rounded = rounds_ ? stream_dout(which, t) : Tensor{}};
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
    if (t.largest.memory.data != nullptr) ops_.fill(t.largest, 0.0f);
    make_saved(t, Recompute::kFull);
    const Tensor activated = t.operand(
        t.keeps(kKeptActivated) ? t.saved[kKeptActivated] : t.scratch[kActivated], kOfActivated);
    if (!t.keeps(kKeptActivated)) activate(t, activated);
    apply(matrix(t.output), matrix_of(t, activated, s_.mlp_hidden), kDownWeight, t,
          t.saved[kResidual].reshape(matrix(t.input).shape));
  }

  // The SwiGLU's output, of gate and up.
  void activate(const UnitTensors& t, const Tensor& activated) {
    ops_.swiglu_forward(activated, t.saved[kGate], t.saved[kUp]);
  }

  // Computes a block's saved activations that `what` does not keep.
  void make_saved(const UnitTensors& t, Recompute what) {
    const Tensor x = matrix(t.input);
    const Tensor normed1 = normed(kNormed1, t);
    norm_forward(normed1, norm1(t), t);
    attend(t, normed1, what);
    const Tensor attention = t.operand(t.saved[kAttention], kOfAttention);
    apply(t.saved[kResidual].reshape(x.shape), matrix_of(t, attention, s_.query_channels()),
          kOutputWeight, t, x);

    const Tensor normed2 = normed(kNormed2, t);
    norm_forward(normed2, norm2(t), t);
    apply(matrix_of(t, t.saved[kGate], s_.mlp_hidden), normed2, kGateWeight, t);
    apply(matrix_of(t, t.saved[kUp], s_.mlp_hidden), normed2, kUpWeight, t);
    if (t.keeps(kKeptActivated)) activate(t, t.operand(t.saved[kKeptActivated], kOfActivated));
  }

  void attend(const UnitTensors& t, const Tensor& normed, Recompute what) {
    const auto in = heads_of<Tensor>(t, t.saved[kQuery], t.saved[kKey], t.saved[kValue]);
    apply(matrix(in.queries), normed, kQueryWeight, t);
    apply(matrix(in.keys), normed, kKeyWeight, t);
    apply(matrix(in.values), normed, kValueWeight, t);
    ops_.rope_forward(in.queries, int(s_.head_size), theta_);
    ops_.rope_forward(in.keys, int(s_.head_size), theta_);
    if (what != Recompute::kFull) return;
    const Tensor attention = t.operand(t.saved[kAttention], kOfAttention);
    ops_.grouped_attention_forward(rows_of(t, attention, s_.query_channels()),
                                   per_head(t, t.saved[kLse]),
                                   {in.queries, in.keys, in.values, in.heads, in.kv_heads});
  }

  void mlp_backward(const UnitTensors& t) {
    const Norm norm = norm2(t);
    const Tensor dnormed = t.scratch[kBranchGradient].reshape(norm.x.shape);
    const Tensor gate = t.operand(matrix_of(t, t.saved[kGate], s_.mlp_hidden), kOfGateGradient);
    const Tensor up = t.operand(matrix_of(t, t.saved[kUp], s_.mlp_hidden), kOfUpGradient);

    down_backward(t, gate, up);
    const Tensor again = norm_again(kNormed2, norm, t);
    apply_backward(dnormed, gate, again, kGateWeight, t);
    apply_backward(dnormed, up, again, kUpWeight, t, true);
    norm_backward(dnormed, norm, t, rounded(kOfAttentionGradient, t));
  }

  // Gate and up become their gradients.
  void down_backward(const UnitTensors& t, const Tensor& gate, const Tensor& up) {
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
                  {.transpose_a = true, .accumulate = t.accumulate, .float8 = float8});
  }

  void attention_backward(const UnitTensors& t) {
    const Norm norm = norm1(t);
    const Tensor attention =
        t.operand(rows_of(t, t.saved[kAttention], s_.query_channels()), kOfAttention);
    const Tensor dattention = rows_of(t, t.scratch[kAttentionGradient], s_.query_channels());
    auto gradients = heads_of<Tensor>(t, t.scratch[kQueryGradient], t.scratch[kKeyGradient],
                                      t.operand(t.scratch[kValueGradient], kOfValueGradient));

    apply_backward(matrix(dattention), stream_dout(kOfAttentionGradient, t), matrix(attention),
                   kOutputWeight, t);
    ops_.grouped_attention_backward(
        gradients, per_head(t, t.scratch[kRowSums]), dattention,
        heads_of<ConstTensor>(t, t.saved[kQuery], t.saved[kKey], t.saved[kValue]), attention,
        per_head(t, t.saved[kLse]));
    gradients.queries = t.operand(gradients.queries, kOfQueryGradient);
    gradients.keys = t.operand(gradients.keys, kOfKeyGradient);
    ops_.rope_backward(gradients.queries, int(s_.head_size), theta_);
    ops_.rope_backward(gradients.keys, int(s_.head_size), theta_);

    const Tensor again = norm_again(kNormed1, norm, t);
    const Tensor dnormed = t.scratch[kBranchGradient].reshape(norm.x.shape);
    apply_backward(dnormed, matrix(gradients.queries), again, kQueryWeight, t);
    apply_backward(dnormed, matrix(gradients.keys), again, kKeyWeight, t, true);
    apply_backward(dnormed, matrix(gradients.values), again, kValueWeight, t, true);
    norm_backward(dnormed, norm, t);
  }

  Ops& ops_;
  const std::vector<UnitSpec> units_;
  const Sizes s_;
  const double theta_;
  const float eps_;
  const bool tied_;
  const bool float8_;
  const bool rounds_;  // the stream's gradient, for products
};

}  // namespace
}  // namespace gxp::llama

namespace gxp {

std::unique_ptr<Model> make_llama_model(const Architecture& architecture, Ops& ops) {
  return std::make_unique<llama::LlamaModel>(architecture, ops);
}

}  // namespace gxp
