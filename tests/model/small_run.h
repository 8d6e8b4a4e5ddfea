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

class SmallRun {
 public:
  explicit SmallRun(const ModelConfig& config, KeptOutputs kept = KeptOutputs::kNone)
      : architecture_(make_architecture(config, DType::kF32, kept)),
        ops_(make_cpu_ops(pool_)),
        model_(make_model(architecture_, *ops_)),
        tokens_(kTokens),
        targets_(kTokens),
        losses_(kTokens),
        stream_gradient_(kTokens * size_t(config.hidden)),
        streams_(units().size() - 1, Floats(stream_gradient_.size())) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> weights(-0.5f, 0.5f);
    std::uniform_int_distribution<int32_t> ids(0, config.vocab_size - 1);
    for (int32_t& token : tokens_) token = ids(random);
    for (int32_t& target : targets_) target = ids(random);
    targets_[2] = -1;  // not counted
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
  static constexpr size_t kRows = 2, kPositions = 5, kTokens = kRows * kPositions;

  static Tensor flat(Floats& floats) {
    return {memory_of(floats), DType::kF32, Shape{floats.size()}};
  }
  static Tensor shaped(Floats& floats, const std::vector<size_t>& shape) {
    return flat(floats).reshape(shape.size() == 1 ? Shape{shape[0]} : Shape{shape[0], shape[1]});
  }
  static Tensor ids(std::vector<int32_t>& ids) {
    return {memory_of(ids), DType::kI32, Shape{kRows, kPositions}};
  }
  [[nodiscard]] Tensor stream(Floats& floats) const {
    return flat(floats).reshape({kRows, kPositions, size_t(architecture_.config.hidden)});
  }
  // It holds NaNs, so that nothing is read before it is written.
  static std::vector<Floats> memory_for(const std::vector<ActivationSpec>& specs) {
    std::vector<Floats> memory;
    for (const ActivationSpec& spec : specs)
      memory.emplace_back(spec.count(kTokens), std::numeric_limits<float>::quiet_NaN());
    return memory;
  }

  UnitTensors tensors(size_t unit, std::vector<Floats>& scratch) {
    const UnitSpec& spec = units()[unit];
    UnitTensors t;
    t.accumulate = accumulate_;
    for (size_t i = 0; i < spec.tensors.size(); ++i) {
      t.parameters.push_back(shaped(parameters_[unit][i], spec.tensors[i].shape));
      t.gradients.push_back(shaped(gradients_[unit][i], spec.tensors[i].shape));
    }
    if (spec.borrows_from >= 0) {
      const auto lender = size_t(spec.borrows_from);
      t.borrowed = shaped(parameters_[lender][0], units()[lender].tensors[0].shape);
      t.borrowed_gradient = shaped(gradients_[lender][0], units()[lender].tensors[0].shape);
    }
    for (Floats& saved : saved_[unit]) t.saved.push_back(flat(saved));
    for (Floats& floats : scratch) t.scratch.push_back(flat(floats));
    t.tokens = ids(tokens_);
    t.targets = ids(targets_);
    t.losses = flat(losses_);
    if (unit > 0) t.input = stream(streams_[unit - 1]);
    if (unit < streams_.size()) t.output = stream(streams_[unit]);
    t.stream_gradient = stream(stream_gradient_);
    return t;
  }

  void forward() {
    for (size_t unit = 0; unit + 1 < units().size(); ++unit) {
      std::vector<Floats> scratch = memory_for(units()[unit].forward_scratch);
      model_->forward(int(unit), tensors(unit, scratch));
    }
  }

  void make_again(size_t unit, Recompute what) {
    const UnitSpec& spec = units()[unit];
    for (size_t i = 0; i < spec.saved.size(); ++i) {
      if (!keeps(what, spec.saved[i])) saved_[unit][i] = memory_for({spec.saved[i]})[0];
    }
    std::vector<Floats> scratch = memory_for(spec.recompute_scratch);
    model_->recompute(tensors(unit, scratch), what);
  }

  const Architecture architecture_;
  ThreadPool pool_{1};
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::vector<int32_t> tokens_, targets_;
  Floats losses_, stream_gradient_;
  std::vector<Floats> streams_;                                      // after each unit but the head
  bool accumulate_ = false;                                          // as UnitTensors::accumulate
  std::vector<std::vector<Floats>> parameters_, gradients_, saved_;  // by unit
};

// Small models that between them have all that the family's settings can change.
inline std::vector<ModelConfig> small_models(const Family& family) {
  ModelConfig model;
  model.family = family.name;
  model.vocab_size = 13;
  model.context = 6;
  model.hidden = 8;
  model.layers = 2;
  model.heads = 2;
  if (family.has("mlp_hidden")) model.mlp_hidden = 10;
  std::vector<ModelConfig> models = {model};
  if (family.has("kv_heads")) model.kv_heads = 1;
  if (family.has("head_size")) model.head_size = 6;
  if (family.has("tied_head")) model.tied_head = true;
  if (!family.keys.empty()) models.push_back(model);
  return models;
}

inline std::vector<ModelConfig> small_models() {
  std::vector<ModelConfig> all;
  for (const Family& family : families()) {
    for (const ModelConfig& model : small_models(family)) all.push_back(model);
  }
  return all;
}

}  // namespace gxp
