// Llama's forward and backward; related families override parts. Its tensors: lib/arch/llama.h.
#pragma once

#include <vector>

#include "lib/arch/llama.h"
#include "lib/model/model.h"
#include "lib/model/token_losses.h"
#include "lib/model/views.h"

namespace gxp::llama {

class LlamaModel : public Model {
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
  void forward(int unit, const UnitTensors& t) override;
  void recompute(const UnitTensors& t, Recompute what) override { make_saved(t, what); }
  void backward(int unit, const UnitTensors& t, bool accumulate) override;
  void loss(const UnitTensors& t, float scale, bool accumulate) override;
  void evaluate_loss(const UnitTensors& t) override {
    compute_losses(ops_, t, head_of(t), final_norm(t), t.scratch[kHeadLogits]);
  }
  void logits(const UnitTensors& t) override {
    compute_last_logits(ops_, t, head_of(t), final_norm(t));
  }

 protected:
  [[nodiscard]] HeadMatrix head_of(const UnitTensors& t) const;
  Tensor final_norm(const UnitTensors& t);
  void clear_unless(bool keep, const Tensor& gradient) {
    if (!keep && is_trained(gradient)) ops_.fill(gradient, 0.0f);
  }
  // y = x W^T [+ residual], for W stored (out, in) at index `weight`.
  void apply(const Tensor& y, const Tensor& x, int weight, const UnitTensors& t,
             const ConstTensor& residual = {});
  // dx = dy W, or added to dx, and dW (+)= dy^T x.
  void apply_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, int weight,
                      const UnitTensors& t, bool accumulate, bool add_dx = false);
  // The norm's output, which is recomputed unless forward has kept it.
  Tensor norm_again(BlockSaved output, const Tensor& x, const Tensor& rstd, int weight,
                    const UnitTensors& t);
  // stream += gradient through the norm whose weight is at index `weight`.
  void norm_backward(const Tensor& stream, const Tensor& dout, const Tensor& x, const Tensor& rstd,
                     int weight, const UnitTensors& t, bool accumulate,
                     const StreamOutputs& also = {});
  // The complete gradient of the stream as products take it: rounded, unless they are f32.
  [[nodiscard]] Tensor stream_dout(BlockOperand which, const UnitTensors& t) const {
    const Tensor stream = matrix(t.stream_gradient);
    if (!rounds_) return stream;
    return t.operand(t.scratch[kRoundedGradient].reshape(stream.shape), which);
  }
  [[nodiscard]] StreamOutputs rounded(BlockOperand which, const UnitTensors& t) const {
    return {.rounded = rounds_ ? stream_dout(which, t) : Tensor{}};
  }
  // The output of a norm and its place among the operands.
  static Tensor normed(BlockSaved output, const UnitTensors& t) {
    return t.operand(t.normed(output), output == kNormed1 ? kOfNormed1 : kOfNormed2);
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
  void block_forward(const UnitTensors& t);
  // Computes a block's saved activations that `what` does not keep.
  void make_saved(const UnitTensors& t, Recompute what);
  // Its SwiGLU's output, of gate and up.
  void activate(const UnitTensors& t, const Tensor& activated);
  void attend(const UnitTensors& t, const Tensor& normed, Recompute what);
  // For related families: queries and keys, before positions turn them, from the normed stream.
  virtual void make_heads(const UnitTensors& t, const Tensor& normed, const Tensor& queries,
                          const Tensor& keys);
  // Returns the gradients of the two products' results, which may replace `gradients`.
  struct HeadGradients {
    Tensor queries, keys;
  };
  virtual HeadGradients heads_backward(const UnitTensors& t, const HeadGradients& gradients,
                                       bool accumulate);

  void mlp_backward(const UnitTensors& t, bool accumulate);
  // Gate and up become their gradients.
  void down_backward(const UnitTensors& t, const Tensor& gate, const Tensor& up, bool accumulate);
  void attention_backward(const UnitTensors& t, bool accumulate);

  Ops& ops_;
  const std::vector<UnitSpec> units_;
  const Sizes s_;
  const double theta_;
  const float eps_;
  const bool tied_;
  const bool float8_;
  const bool rounds_;  // the stream's gradient, for products
};

}  // namespace gxp::llama
