// The decoder of all families (lib/arch/decoder.h): embedding and head, and the blocks between them.
#include "lib/arch/decoder.h"

#include "lib/model/block.h"
#include "lib/model/model.h"
#include "lib/model/token_losses.h"

namespace gxp {
namespace {

class DecoderModel final : public Model {
 public:
  DecoderModel(const Architecture& architecture, Ops& ops)
      : ops_(ops), d_(architecture.decoder), norms_(d_, ops), block_(architecture, ops) {}

  void forward(int unit, const UnitTensors& t) override {
    if (unit > 0) return block_.forward(t, layer_of(unit));
    embed(t, 0);
  }

  void extend(int unit, const UnitTensors& t, const KeyValueCache& past, size_t first) override {
    if (unit > 0) return block_.extend(t, layer_of(unit), past, first);
    embed(t, first);
  }

  void recompute(int unit, const UnitTensors& t, Recompute what) override {
    block_.recompute(t, layer_of(unit), what);
  }

  void backward(int unit, const UnitTensors& t) override {
    if (unit > 0) return block_.backward(t, layer_of(unit));
    const Tensor dpositions = positions_of(t.gradients);
    if (!t.accumulate && !d_.tied_head) clear(t.gradients[0]);
    if (!t.accumulate) clear(dpositions);
    const Tensor& stream = t.stream_gradient;
    if (d_.embedding_scale != 1) ops_.scale(stream, stream, float(d_.embedding_scale));
    ops_.embedding_backward(t.gradients[0], dpositions, stream, t.tokens, d_.pad_token,
                            t.document_begin);
  }

  void loss(const UnitTensors& t, float scale) override {
    const HeadTensors head = head_of(t);
    norms_.forward(head.normed, final_norm(t), t);
    differentiate_losses(ops_, t, head, scale);
    ops_.fill(matrix(t.stream_gradient), 0.0f);
    norms_.backward(matrix(t.stream_gradient), head.dnormed, final_norm(t), t);
  }

  void evaluate_loss(const UnitTensors& t) override {
    const HeadTensors head = head_of(t);
    norms_.forward(head.normed, final_norm(t), t);
    compute_losses(ops_, t, head);
  }

  void logits(const UnitTensors& t) override {
    const HeadTensors head = head_of(t);
    norms_.forward(head.normed, final_norm(t), t);
    compute_last_logits(ops_, t, head);
  }

 private:
  // Of the positions from `first` on.
  void embed(const UnitTensors& t, size_t first) {
    Tensor positions = positions_of(t.parameters);
    if (d_.kind.position_table) positions = positions.rows(first, t.tokens.shape[1]);
    ops_.embedding_forward(t.output, t.tokens, t.parameters[0], positions, t.document_begin);
    if (d_.embedding_scale != 1) ops_.scale(t.output, t.output, float(d_.embedding_scale));
  }

  static size_t layer_of(int unit) { return size_t(unit) - 1; }

  [[nodiscard]] Tensor positions_of(const std::vector<Tensor>& tensors) const {
    return d_.kind.position_table ? tensors[1] : Tensor{};
  }

  [[nodiscard]] Norm final_norm(const UnitTensors& t) const {
    return {matrix(t.input), scratch(HeadScratch::kMean, t), scratch(HeadScratch::kRstd, t),
            size_t(d_.final_norm)};
  }

  // Empty where the operation has none.
  [[nodiscard]] Tensor scratch(HeadScratch what, const UnitTensors& t) const {
    const bool has = d_.head_scratch.has(what) && d_.head_scratch[what] < t.scratch.size();
    return has ? t.scratch[d_.head_scratch[what]] : Tensor{};
  }
  [[nodiscard]] Tensor rows(HeadScratch what, const UnitTensors& t) const {
    const Tensor flat = scratch(what, t);
    return flat.memory.data == nullptr ? flat : flat.reshape(matrix(t.input).shape);
  }

  [[nodiscard]] HeadTensors head_of(const UnitTensors& t) const {
    const auto own = [](int index, const std::vector<Tensor>& tensors) {
      return index < 0 || tensors.empty() ? Tensor{} : tensors[size_t(index)];
    };
    return {
        .weight = d_.tied_head ? t.borrowed : own(d_.head_weight, t.parameters),
        .weight_gradient = d_.tied_head ? t.borrowed_gradient : own(d_.head_weight, t.gradients),
        .bias = own(d_.head_bias, t.parameters),
        .bias_gradient = own(d_.head_bias, t.gradients),
        .normed = rows(HeadScratch::kNormed, t),
        .dnormed = rows(HeadScratch::kNormedGradient, t),
        .logits = scratch(HeadScratch::kLogits, t),
        .capped = scratch(HeadScratch::kCapped, t),
        .factor = float(1 / d_.logit_divisor),
        .cap = d_.logit_cap};
  }

  void clear(const Tensor& gradient) {
    if (is_trained(gradient)) ops_.fill(gradient, 0.0f);
  }

  Ops& ops_;
  const Decoder d_;
  Norms norms_;
  DecoderBlock block_;
};

}  // namespace

std::unique_ptr<Model> make_model(const Architecture& architecture, Ops& ops) {
  return std::make_unique<DecoderModel>(architecture, ops);
}

}  // namespace gxp
