#include "lib/optim/elementwise.h"

namespace gxp {
namespace {

// The settings, and which of them apply to a range.
class Elementwise : public Optimizer {
 public:
  Elementwise(Ops& ops, const OptimConfig& config) : ops_(ops), config_(config) {}

 protected:
  [[nodiscard]] double decay_of(const UpdateRange& range) const {
    return range.decay ? config_.weight_decay : 0.0;
  }

  Ops& ops_;
  const OptimConfig config_;
};

class AdamW final : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void update(const UpdateRange& range, const UpdateStep& step) override {
    ops_.adamw(range.weights, range.kept[0], range.kept[1], range.gradients,
               {step.lr, config_.beta1, config_.beta2, config_.eps, decay_of(range), step.step,
                step.gradient_scale});
  }
};

class Adam final : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void update(const UpdateRange& range, const UpdateStep& step) override {
    ops_.adamw(range.weights, range.kept[0], range.kept[1], range.gradients,
               {step.lr, config_.beta1, config_.beta2, config_.eps, 0.0, step.step,
                step.gradient_scale, decay_of(range)});
  }
};

class Sgd final : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void update(const UpdateRange& range, const UpdateStep& step) override {
    const double damped = step.step == 1 ? 0.0 : config_.dampening;
    const MomentumStep momentum = {.kept = config_.momentum,
                                   .fresh = 1 - damped,
                                   .carried = config_.nesterov ? config_.momentum : 1.0,
                                   .ahead = config_.nesterov ? 1.0 : 0.0,
                                   .gradient_scale = step.gradient_scale};
    ops_.sgd(range.weights, range.kept.empty() ? Tensor() : range.kept[0], range.gradients,
             {step.lr, decay_of(range), momentum});
  }
};

class Lion final : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void update(const UpdateRange& range, const UpdateStep& step) override {
    ops_.lion(range.weights, range.kept[0], range.gradients,
              {step.lr, config_.beta1, config_.beta2, decay_of(range), step.gradient_scale});
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const ComputeLane& lane, const OptimConfig& config) {
  return std::make_unique<AdamW>(lane.ops, config);
}
std::unique_ptr<Optimizer> make_adam(const ComputeLane& lane, const OptimConfig& config) {
  return std::make_unique<Adam>(lane.ops, config);
}
std::unique_ptr<Optimizer> make_sgd(const ComputeLane& lane, const OptimConfig& config) {
  return std::make_unique<Sgd>(lane.ops, config);
}
std::unique_ptr<Optimizer> make_lion(const ComputeLane& lane, const OptimConfig& config) {
  return std::make_unique<Lion>(lane.ops, config);
}

}  // namespace gxp
