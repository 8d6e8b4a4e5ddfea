#include <algorithm>
#include <cmath>
#include <span>

#include "lib/optim/whole.h"

namespace gxp {
namespace {

template <class T>
Tensor take(Memory& memory, size_t count, DType dtype) {
  const Tensor tensor(memory.slice(0, count * sizeof(T)), dtype, Shape{count});
  memory = memory.slice(count * sizeof(T), memory.bytes - count * sizeof(T));
  return tensor;
}

template <class T>
std::span<T> span_of(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.count()};
}

class Adafactor final : public Optimizer {
 public:
  Adafactor(Ops& ops, const OptimConfig& config) : ops_(ops), config_(config) {}

  // Every tensor is seen whole.
  void update(const UpdateRange& /*range*/, const UpdateStep& /*step*/) override {
    GXP_ASSERT(false);
  }

  void prepare(const Tensor& direction, const UpdateRange& range,
               const UpdateStep& /*step*/) override {
    ops_.convert(direction, range.gradients);
  }

  void transform(const WholeTensor& whole, const UpdateStep& step) override {
    const bool is_matrix = whole.direction.shape.rank() == 2;
    const size_t rows = is_matrix ? whole.direction.shape[0] : 1;
    const size_t columns = whole.direction.shape.columns();
    const Tensor x = whole.direction.reshape({rows, columns});
    Memory workspace = whole.workspace;
    const Tensor row_sums = take<double>(workspace, rows, DType::kF64);
    const Tensor column_sums = take<double>(workspace, columns, DType::kF64);
    const Tensor row_factors = take<float>(workspace, rows, DType::kF32);
    const Tensor column_factors = take<float>(workspace, columns, DType::kF32);
    ops_.sums_of_squares(is_matrix ? row_sums : Tensor(), column_sums, x);
    const std::span<float> of_columns = span_of<float>(column_factors);
    const std::span<float> of_rows = span_of<float>(row_factors);
    double row_mean = 1;  // of the row means: a vector's cancels out
    if (is_matrix) row_mean = keep(whole.kept[0], row_sums, columns, step);
    keep(whole.kept[1], column_sums, rows, step);
    for (size_t j = 0; j < columns; ++j)
      of_columns[j] = float(1 / std::sqrt(double(span_of<float>(whole.kept[1])[j])));
    for (size_t i = 0; i < rows; ++i) {
      const double kept = is_matrix ? span_of<float>(whole.kept[0])[i] : 1.0;
      of_rows[i] = float(step.gradient_scale * std::sqrt(row_mean / kept));
    }
    ops_.scale_rows_and_columns(x, x, row_factors, column_factors);
    const double rms = std::sqrt(ops_.sum_of_squares(x) / double(rows * columns));
    const double excess = std::max(1.0, rms / config_.clip_threshold);
    ops_.momentum(x, x, x, {.kept = 1 / excess, .fresh = 0});
  }

  void apply(const UpdateRange& range, const UpdateStep& step) override {
    ops_.sgd(range.weights, {}, range.gradients,
             {step.lr, range.decay ? config_.weight_decay : 0.0, {.kept = 0, .fresh = 1}});
  }

 private:
  // Folds means of `count` squares into what is kept of them; returns the mean of that.
  double keep(const Tensor& kept, const Tensor& sums, size_t count, const UpdateStep& step) const {
    const double beta = 1 - std::pow(double(step.step), config_.decay_rate);
    const double to_mean = step.gradient_scale * step.gradient_scale / double(count);
    const std::span<float> old = span_of<float>(kept);
    const std::span<double> fresh = span_of<double>(sums);
    double total = 0;
    for (size_t i = 0; i < old.size(); ++i) {
      old[i] = float(beta * old[i] + (1 - beta) * (fresh[i] * to_mean + config_.eps1));
      total += old[i];
    }
    return total / double(old.size());
  }

  Ops& ops_;
  const OptimConfig config_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adafactor(Ops& ops, const OptimConfig& config) {
  return std::make_unique<Adafactor>(ops, config);
}

}  // namespace gxp
