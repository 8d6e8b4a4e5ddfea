#include <algorithm>
#include <cmath>

#include "lib/arch/optimizers.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/orthogonalise.h"

namespace gxp {
namespace {

// Jordan's: the steepest at 0 that still brings 1 back to about 1.
constexpr double kA = 3.4445;
constexpr double kB = -4.7750;
constexpr double kC = 2.0315;

constexpr double kNormFloor = 1e-7;  // as torch.optim.Muon adds to the norm

Tensor take(Memory& memory, size_t rows, size_t columns) {
  const size_t bytes = rows * columns * sizeof(float);
  const Tensor tensor(memory.slice(0, bytes), DType::kF32, Shape{rows, columns});
  memory = memory.slice(bytes, memory.bytes - bytes);
  return tensor;
}

// x = a * x + b * y.
void blend(Ops& ops, const Tensor& x, double a, const Tensor& y, double b) {
  ops.momentum(x, x, y, {.kept = a, .fresh = b});
}

// Jordan et al., 2024, kellerjordan.github.io/posts/muon, for the matrices of the blocks: momentum
// as torch.optim.Muon has it, orthogonalised in f32. With adjust_lr = match_rms_adamw, the scale of
// Liu et al., arXiv:2502.16982.
class Muon final : public WholeOptimizer {
 public:
  Muon(const ComputeLane& lane, const OptimConfig& config) : ops_(lane.ops), config_(config) {}

  void prepare(const Tensor& direction, const UpdateRange& range, const UpdateStep& step) override {
    const double mu = config_.momentum;
    ops_.momentum(direction, range.kept[0], range.gradients,
                  {.kept = mu,
                   .fresh = 1 - mu,
                   .carried = config_.nesterov ? mu : 1.0,
                   .ahead = config_.nesterov ? 1 - mu : 0.0,
                   .gradient_scale = step.gradient_scale});
  }

  void transform(const WholeTensor& whole, const UpdateStep& /*step*/) override {
    const Tensor& x = whole.direction;
    orthogonalise(ops_, x, whole.workspace, config_.ns_steps);
    const auto longer = double(std::max(x.shape[0], x.shape[1]));
    const bool match = config_.adjust_lr == LrAdjustment::kMatchRmsAdamw;
    const double scale =
        match ? 0.2 * std::sqrt(longer) : std::sqrt(std::max(1.0, whole.outputs_per_input));
    blend(ops_, x, scale, x, 0);
  }

  void apply(const UpdateRange& range, const UpdateStep& step) override {
    ops_.sgd(range.weights, {}, range.gradients,
             {step.lr, config_.weight_decay, {.kept = 0, .fresh = 1}});
  }

 private:
  Ops& ops_;
  const OptimConfig config_;
};

}  // namespace

void orthogonalise(Ops& ops, const Tensor& x, Memory workspace, int steps) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  const bool is_wide = rows <= columns;
  const size_t m = std::min(rows, columns);
  const Tensor gram = take(workspace, m, m);  // on the shorter side: x x' or x' x
  const Tensor polynomial = take(workspace, m, m);
  const Tensor product = take(workspace, rows, columns);
  blend(ops, x, 1 / (std::sqrt(ops.sum_of_squares(x)) + kNormFloor), x, 0);
  for (int step = 0; step < steps; ++step) {
    ops.matmul(gram, x, x, {.transpose_a = !is_wide, .transpose_b = is_wide});
    ops.matmul(polynomial, gram, gram, {});
    blend(ops, polynomial, kC, gram, kB);
    if (is_wide)
      ops.matmul(product, polynomial, x, {});
    else
      ops.matmul(product, x, polynomial, {});
    blend(ops, x, kA, product, 1);
  }
}

Optimizer make_adamw(const ComputeLane& lane, const OptimConfig& config);

// AdamW updates the other tensors.
Optimizer make_muon(const ComputeLane& lane, const OptimConfig& config) {
  return {make_adamw(lane, config).ranges, std::make_unique<Muon>(lane, config)};
}

}  // namespace gxp
