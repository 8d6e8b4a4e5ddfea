// The optimizers whose update of a weight depends on its own gradient and state alone.
#include <span>
#include <vector>

#include "lib/base/hash.h"
#include "lib/optim/optimizer.h"

namespace gxp {
namespace {

// The settings, and which of them apply to a range.
class Elementwise : public RangeOptimizer {
 public:
  Elementwise(Ops& ops, const OptimConfig& config) : ops_(ops), config_(config) {}

 protected:
  [[nodiscard]] double decay_of(const UpdateRange& range) const {
    return range.decay ? config_.weight_decay : 0.0;
  }

  Ops& ops_;
  const OptimConfig config_;
};

// AdamW: Loshchilov & Hutter, arXiv:1711.05101; Muon's has a learning rate of its own. Adam: Kingma &
// Ba, arXiv:1412.6980, with the weight decay in the gradient, as PyTorch's.
class AdamFamily final : public Elementwise {
 public:
  AdamFamily(Ops& ops, const OptimConfig& config, bool is_adamw)
      : Elementwise(ops, config), is_adamw_(is_adamw) {}
  void update(std::span<const UpdateRange> ranges, const UpdateStep& step) override {
    std::vector<AdamWRange> all;
    for (const UpdateRange& range : ranges) {
      AdamWRange& one =
          all.emplace_back(AdamWRange{range.weights, range.kept[0], range.kept[1], range.gradients,
                                      step_of(decay_of(range), step)});
      one.first_bits = bits_of(range, step, 1);
      one.second_bits = bits_of(range, step, 2);
      if (range.kept.size() == 2) continue;
      one.first_scales = range.kept[2];
      one.second_scales = range.kept[3];
    }
    ops_.adamw(all);
  }

 private:
  // `moment` tells the bits from those that round the weights in the same step.
  static RandomBits bits_of(const UpdateRange& range, const UpdateStep& step, uint64_t moment) {
    return {mix64(mix64(range.key + uint64_t(step.step)) + moment), range.first};
  }
  [[nodiscard]] AdamWStep step_of(double decay, const UpdateStep& step) const {
    return {.lr = is_adamw_ ? step.lr * config_.adamw_lr_ratio : step.lr,
            .beta1 = config_.beta1,
            .beta2 = config_.beta2,
            .eps = config_.eps,
            .weight_decay = is_adamw_ ? decay : 0,
            .step = step.step,
            .gradient_scale = step.gradient_scale,
            .l2 = is_adamw_ ? 0 : decay};
  }

  const bool is_adamw_;
};

// With PyTorch's momentum: lr is not a part of it, and the first gradient is not dampened.
class Sgd final : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void update(std::span<const UpdateRange> ranges, const UpdateStep& step) override {
    const double damped = step.step == 1 ? 0.0 : config_.dampening;
    const MomentumStep momentum = {.kept = config_.momentum,
                                   .fresh = 1 - damped,
                                   .carried = config_.nesterov ? config_.momentum : 1.0,
                                   .ahead = config_.nesterov ? 1.0 : 0.0,
                                   .gradient_scale = step.gradient_scale};
    for (const UpdateRange& range : ranges)
      ops_.sgd(range.weights, range.kept.empty() ? Tensor() : range.kept[0], range.gradients,
               {step.lr, decay_of(range), momentum});
  }
};

// Chen et al., arXiv:2302.06675.
class Lion final : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void update(std::span<const UpdateRange> ranges, const UpdateStep& step) override {
    for (const UpdateRange& range : ranges)
      ops_.lion(range.weights, range.kept[0], range.gradients,
                {step.lr, config_.beta1, config_.beta2, decay_of(range), step.gradient_scale});
  }
};

}  // namespace

Optimizer make_adamw(const ComputeLane& lane, const OptimConfig& config) {
  return {.ranges = std::make_unique<AdamFamily>(lane.ops, config, true)};
}
Optimizer make_adam(const ComputeLane& lane, const OptimConfig& config) {
  return {.ranges = std::make_unique<AdamFamily>(lane.ops, config, false)};
}
Optimizer make_sgd(const ComputeLane& lane, const OptimConfig& config) {
  return {.ranges = std::make_unique<Sgd>(lane.ops, config)};
}
Optimizer make_lion(const ComputeLane& lane, const OptimConfig& config) {
  return {.ranges = std::make_unique<Lion>(lane.ops, config)};
}

}  // namespace gxp
