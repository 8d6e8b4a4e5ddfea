#include <algorithm>
#include <cmath>
#include <span>

#include "lib/optim/optimizer.h"

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

// The host's side of small tensors: themselves, or copies in pinned memory where they are a GPU's.
class HostSide {
 public:
  explicit HostSide(const ComputeLane& lane) : lane_(lane) {}
  // Forgets the tensors so far, and takes tensors of `bytes` in all from here on.
  void start(size_t bytes) {
    taken_ = 0;
    if (lane_.device.space() == MemorySpace::kHost || pinned_.memory().bytes >= bytes) return;
    lane_.stream.finish(Deadline::after(kComputeTimeout));  // the old ones may still be copied
    pinned_ = {};
    pinned_ = lane_.device.allocate_host(bytes);
  }
  // To be written.
  Tensor of(const Tensor& there) {
    if (there.memory.space == MemorySpace::kHost) return there;
    taken_ += there.memory.bytes;
    return {pinned_.memory().slice(taken_ - there.memory.bytes, there.memory.bytes), there.dtype,
            there.shape};
  }
  // To be read once the stream is finished.
  Tensor fetch(const Tensor& there) {
    const Tensor here = of(there);
    if (!is_same(here, there)) lane_.stream.copy(here.memory, there.memory);
    return here;
  }
  void send(const Tensor& there, const Tensor& here) {
    if (!is_same(here, there)) lane_.stream.copy(there.memory, here.memory);
  }

 private:
  static bool is_same(const Tensor& a, const Tensor& b) { return a.memory.data == b.memory.data; }

  ComputeLane lane_;
  Buffer pinned_;
  size_t taken_ = 0;
};

// Shazeer & Stern, arXiv:1804.04235, with the learning rate from outside and neither momentum nor
// scaling by the parameter, as Hugging Face's with scale_parameter=False, relative_step=False. A
// vector is a matrix of one row, whose column means are its second moments.
class Adafactor final : public WholeOptimizer {
 public:
  Adafactor(const ComputeLane& lane, const OptimConfig& config)
      : lane_(lane), ops_(lane.ops), config_(config), host_(lane) {}

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
    write_factors(whole, step, {row_sums, column_sums, row_factors, column_factors});
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
  // The sums and factors of a tensor's rows and columns. A vector has columns alone: its rows' mean
  // cancels out.
  struct Sides {
    Tensor row_sums, column_sums, row_factors, column_factors;
  };

  // Updates the state by the sums and makes the factors, on the host: some thousand numbers.
  void write_factors(const WholeTensor& whole, const UpdateStep& step, const Sides& there) {
    const bool is_matrix = whole.direction.shape.rank() == 2;
    const size_t rows = there.row_sums.count();
    const size_t columns = there.column_sums.count();
    host_.start(whole.workspace.bytes + whole.kept[0].memory.bytes + whole.kept[1].memory.bytes);
    const Sides here = {host_.fetch(there.row_sums), host_.fetch(there.column_sums),
                        host_.of(there.row_factors), host_.of(there.column_factors)};
    const Tensor kept_rows = is_matrix ? host_.fetch(whole.kept[0]) : Tensor();
    const Tensor kept_columns = host_.fetch(whole.kept[1]);
    lane_.stream.finish(Deadline::after(kComputeTimeout));
    const double row_mean = is_matrix ? keep(kept_rows, here.row_sums, columns, step) : 1;
    keep(kept_columns, here.column_sums, rows, step);
    const std::span<float> of_columns = span_of<float>(here.column_factors);
    const std::span<float> of_rows = span_of<float>(here.row_factors);
    for (size_t j = 0; j < columns; ++j)
      of_columns[j] = float(1 / std::sqrt(double(span_of<float>(kept_columns)[j])));
    for (size_t i = 0; i < rows; ++i) {
      const double kept = is_matrix ? span_of<float>(kept_rows)[i] : 1.0;
      of_rows[i] = float(step.gradient_scale * std::sqrt(row_mean / kept));
    }
    if (is_matrix) host_.send(whole.kept[0], kept_rows);
    host_.send(whole.kept[1], kept_columns);
    host_.send(there.row_factors, here.row_factors);
    host_.send(there.column_factors, here.column_factors);
  }

  // Folds means of `count` squares into the running means; returns the mean of those.
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

  ComputeLane lane_;
  Ops& ops_;
  const OptimConfig config_;
  HostSide host_;
};

}  // namespace

Optimizer make_adafactor(const ComputeLane& lane, const OptimConfig& config) {
  return {.whole = std::make_unique<Adafactor>(lane, config)};
}

}  // namespace gxp
