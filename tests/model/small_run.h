// A small model of any family with memory of its own, in f32 on the CPU: its loss as a function of
// its parameters, and the gradients that its hand-derived backward gives.
#pragma once

#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "lib/arch/family.h"
#include "lib/arch/recompute.h"
#include "lib/model/model.h"

namespace gxp {

using Floats = std::vector<float>;

// Rows of tokens and their targets.
struct SmallBatch {
  size_t rows, positions;
  std::vector<int32_t> tokens, targets;
  std::vector<int32_t> document_begin = {};  // none: a row is one document
};

inline SmallBatch random_batch(int vocabulary) {
  SmallBatch batch{.rows = 2, .positions = 5, .tokens = {}, .targets = {}};
  std::mt19937 random(1);
  std::uniform_int_distribution<int32_t> ids(0, vocabulary - 1);
  for (auto* list : {&batch.tokens, &batch.targets})
    for (size_t i = 0; i < batch.rows * batch.positions; ++i) list->push_back(ids(random));
  batch.targets[2] = -1;  // not counted
  return batch;
}

class SmallRun {
 public:
  explicit SmallRun(const ModelConfig& config, KeptOutputs kept = KeptOutputs::kNone,
                    const LoraConfig& lora = {})
      : SmallRun(config, random_batch(config.vocab_size), kept, lora) {}
  SmallRun(const ModelConfig& config, SmallBatch batch, KeptOutputs kept = KeptOutputs::kNone,
           const LoraConfig& lora = {})
      : architecture_(make_architecture(config, DType::kF32, kept, lora)),
        ops_(make_cpu_ops(pool_)),
        model_(make_model(architecture_, *ops_)),
        batch_(std::move(batch)),
        losses_(token_count()),
        stream_gradient_(token_count() * size_t(config.hidden)),
        streams_(units().size() - 1, Floats(stream_gradient_.size())) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> weights(-0.5f, 0.5f);
    for (const UnitSpec& unit : units()) {
      parameters_.emplace_back();
      gradients_.emplace_back();
      for (const TensorSpec& tensor : unit.tensors) {
        gradients_.back().emplace_back(tensor.count());
        Floats& values = parameters_.back().emplace_back(tensor.count());
        for (float& value : values)
          value = weights(random) + (tensor.initial == Initial::kOnes ? 1.0f : 0.0f);
      }
      saved_.push_back(memory_for(unit.saved));
    }
  }

  [[nodiscard]] const std::vector<UnitSpec>& units() const { return architecture_.units; }
  Floats& parameters(size_t unit, size_t tensor) { return parameters_[unit][tensor]; }
  [[nodiscard]] const std::vector<std::vector<Floats>>& gradients() const { return gradients_; }

  double loss() {
    forward();
    const size_t head = units().size() - 1;
    std::vector<Floats> scratch = memory_for(units()[head].forward_scratch);
    model_->evaluate_loss(tensors(head, scratch));
    return std::accumulate(losses_.begin(), losses_.end(), 0.0);
  }

  // (rows, vocabulary): of each row's last position.
  Floats last_logits() {
    forward();
    return logits();
  }
  // The same of positions from `first` on, behind those that `caches`, by unit, have.
  Floats last_logits(const std::vector<KeyValueCache>& caches, size_t first) {
    for_units_below_head([&](int unit, const UnitTensors& t) {
      model_->extend(unit, t, caches[size_t(unit)], first);
    });
    return logits();
  }
  [[nodiscard]] const Decoder& decoder() const { return architecture_.decoder; }

  // The gradients of the sum of the losses. What `made_again` does not keep is lost and made again.
  void differentiate(bool accumulate, Recompute made_again = Recompute::kNone) {
    forward();
    const size_t head = units().size() - 1;
    std::vector<Floats> scratch = memory_for(units()[head].backward_scratch);
    accumulate_ = accumulate;
    model_->loss(tensors(head, scratch), 1.0f);
    for (size_t unit = head; unit-- > 0;) {
      if (made_again != Recompute::kNone && !units()[unit].saved.empty())
        make_again(unit, made_again);
      scratch = memory_for(units()[unit].backward_scratch);
      model_->backward(int(unit), tensors(unit, scratch));
    }
  }

 private:
  [[nodiscard]] size_t token_count() const { return batch_.tokens.size(); }

  static Tensor flat(Floats& floats) {
    return {memory_of(floats), DType::kF32, Shape{floats.size()}};
  }
  static Tensor shaped(Floats& floats, const std::vector<size_t>& shape) {
    return flat(floats).reshape(shape.size() == 1 ? Shape{shape[0]} : Shape{shape[0], shape[1]});
  }
  [[nodiscard]] Tensor ids(std::vector<int32_t>& ids) const {
    return {memory_of(ids), DType::kI32, Shape{batch_.rows, batch_.positions}};
  }
  [[nodiscard]] Tensor stream(Floats& floats) const {
    return flat(floats).reshape(
        {batch_.rows, batch_.positions, size_t(architecture_.config.hidden)});
  }
  // It holds NaNs, so that nothing is read before it is written.
  [[nodiscard]] std::vector<Floats> memory_for(const std::vector<ActivationSpec>& specs) const {
    std::vector<Floats> memory;
    for (const ActivationSpec& spec : specs)
      memory.emplace_back(spec.count(token_count()), std::numeric_limits<float>::quiet_NaN());
    return memory;
  }

  UnitTensors tensors(size_t unit, std::vector<Floats>& scratch) {
    const UnitSpec& spec = units()[unit];
    UnitTensors t;
    t.accumulate = accumulate_;
    for (size_t i = 0; i < spec.tensors.size(); ++i) {
      t.parameters.push_back(shaped(parameters_[unit][i], spec.tensors[i].shape));
      t.gradients.push_back(
          spec.tensors[i].frozen ? Tensor() : shaped(gradients_[unit][i], spec.tensors[i].shape));
    }
    if (spec.borrows_from >= 0) {
      const auto lender = size_t(spec.borrows_from);
      const TensorSpec& lent = units()[lender].tensors[0];
      t.borrowed = shaped(parameters_[lender][0], lent.shape);
      if (!lent.frozen) t.borrowed_gradient = shaped(gradients_[lender][0], lent.shape);
    }
    t.dropout = {unit, &kFirstToken};
    for (Floats& saved : saved_[unit]) t.saved.push_back(flat(saved));
    for (Floats& floats : scratch) t.scratch.push_back(flat(floats));
    t.tokens = ids(batch_.tokens);
    t.targets = ids(batch_.targets);
    if (!batch_.document_begin.empty()) t.document_begin = ids(batch_.document_begin);
    t.losses = flat(losses_);
    if (unit > 0) t.input = stream(streams_[unit - 1]);
    if (unit < streams_.size()) t.output = stream(streams_[unit]);
    t.stream_gradient = stream(stream_gradient_);
    return t;
  }

  template <class Run>
  void for_units_below_head(const Run& run) {
    for (size_t unit = 0; unit + 1 < units().size(); ++unit) {
      std::vector<Floats> scratch = memory_for(units()[unit].forward_scratch);
      run(int(unit), tensors(unit, scratch));
    }
  }
  void forward() {
    for_units_below_head([&](int unit, const UnitTensors& t) { model_->forward(unit, t); });
  }

  Floats logits() {
    const size_t head = units().size() - 1;
    std::vector<Floats> scratch = memory_for(units()[head].forward_scratch);
    const auto vocabulary = size_t(architecture_.config.vocab_size);
    Floats logits(batch_.rows * vocabulary);
    UnitTensors t = tensors(head, scratch);
    t.output = flat(logits).reshape({batch_.rows, vocabulary});
    model_->logits(t);
    return logits;
  }

  void make_again(size_t unit, Recompute what) {
    const UnitSpec& spec = units()[unit];
    for (size_t i = 0; i < spec.saved.size(); ++i) {
      if (!keeps(what, spec.saved[i])) saved_[unit][i] = memory_for({spec.saved[i]})[0];
    }
    std::vector<Floats> scratch = memory_for(spec.recompute_scratch);
    model_->recompute(int(unit), tensors(unit, scratch), what);
  }

  static constexpr uint64_t kFirstToken = 30;

  const Architecture architecture_;
  ThreadPool pool_{1};
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  SmallBatch batch_;
  Floats losses_, stream_gradient_;
  std::vector<Floats> streams_;                                      // after each unit but the head
  bool accumulate_ = false;                                          // as UnitTensors::accumulate
  std::vector<std::vector<Floats>> parameters_, gradients_, saved_;  // by unit
};

inline ModelConfig small_model(std::string_view family) {
  ModelConfig model;
  model.family = family;
  model.vocab_size = 13;
  model.context = 6;
  model.hidden = 8;
  model.layers = 2;
  model.heads = 2;
  model.mlp_hidden = 10;
  return model;
}

// A setting of [model] that not all families have, changed.
struct SmallChange {
  std::string_view key;
  void (*make)(ModelConfig&);
};
inline constexpr SmallChange kSmallChanges[] = {
    {"kv_heads", [](ModelConfig& m) { m.kv_heads = 1; }},
    {"head_size", [](ModelConfig& m) { m.head_size = 12; }},
    {"attention_bias", [](ModelConfig& m) { m.attention_bias = !m.has_attention_bias(); }},
    {"mlp_bias", [](ModelConfig& m) { m.mlp_bias = !m.has_mlp_bias(); }},
    {"query_key_norm", [](ModelConfig& m) { m.query_key_norm = true; }},
    {"parallel_residual", [](ModelConfig& m) { m.parallel_residual = true; }},
    {"rope_partial", [](ModelConfig& m) { m.rope_partial = 0.5; }},
    {"rope_scaling",
     [](ModelConfig& m) {
       m.rope_scaling = RopeScaling::kYarn;
       m.rope_factor = 4;
     }},
    {"rope_local_theta", [](ModelConfig& m) { m.rope_local_theta = 10; }},
    {"unrotated_layers", [](ModelConfig& m) { m.unrotated_layers = "0"; }},
    {"window",
     [](ModelConfig& m) {
       m.window = 2;
       m.window_layers = "1";
     }},
    {"attention_scale", [](ModelConfig& m) { m.attention_scale = 0.7; }},
    {"attention_scale_by_layer", [](ModelConfig& m) { m.attention_scale_by_layer = true; }},
    {"score_cap", [](ModelConfig& m) { m.score_cap = 1.5; }},
    {"logit_cap", [](ModelConfig& m) { m.logit_cap = 2; }},
    {"embedding_scale", [](ModelConfig& m) { m.embedding_scale = 1.5; }},
    {"residual_scale", [](ModelConfig& m) { m.residual_scale = 0.5; }},
    {"logit_divisor", [](ModelConfig& m) { m.logit_divisor = 3; }},
};

// Small models that between them have all that the family's settings can change.
inline std::vector<ModelConfig> small_models(const Family& family) {
  ModelConfig changed = small_model(family.name);
  changed.tied_head = !changed.ties_head();
  changed.activation =
      changed.activation_used() == Activation::kGelu ? Activation::kSilu : Activation::kGelu;
  for (const SmallChange& change : kSmallChanges) {
    if (family.has(change.key)) change.make(changed);
  }
  return {small_model(family.name), changed};
}

inline std::vector<ModelConfig> small_models() {
  std::vector<ModelConfig> all;
  for (const Family& family : families()) {
    for (const ModelConfig& model : small_models(family)) all.push_back(model);
  }
  return all;
}

}  // namespace gxp
