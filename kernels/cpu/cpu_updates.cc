#include "kernels/cpu/cpu_updates.h"

#include <algorithm>

#include "kernels/cpu/float_pieces.h"
#include "kernels/math/adamw_factors.h"
#include "kernels/math/update_factors.h"
#include "kernels/tensor_data.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

// Elements that one thread takes at once: whole cache lines, so that no two threads share one.
constexpr size_t kGrain = 1024;
constexpr size_t kLineFloats = 16;

double* doubles_of(const Tensor& tensor, size_t count) {
  GXP_ASSERT(tensor.dtype == DType::kF64 && tensor.count() == count);
  return tensor.data<double>();
}

}  // namespace

template <class Update>
void CpuUpdates::with_gradients(const ConstTensor& gradients, size_t count, const Update& update) {
  GXP_ASSERT(gradients.count() == count);
  const InPieces from(convert_, gradients);
  pool_.parallel_for(count, kGrain, [&](size_t begin, size_t end) {
    alignas(64) float buffer[kGrain];
    const size_t piece = from.needs_buffer() ? kGrain : end - begin;
    for (size_t at = begin; at < end; at += piece) {
      const size_t here = std::min(piece, end - at);
      update(at, here, from.read(at, here, buffer));
    }
  });
}

void CpuUpdates::adamw(const Tensor& weights, const Tensor& first, const Tensor& second,
                       const ConstTensor& gradients, const AdamWStep& step) {
  const size_t count = weights.count();
  float* const w = vector_of(weights, count);
  float* const m = vector_of(first, count);
  float* const v = vector_of(second, count);
  const AdamWFactors factors = adamw_factors(step);
  with_gradients(gradients, count, [&](size_t at, size_t here, const float* g) {
    kernels_.adamw({w + at, m + at, v + at, g}, here, factors);
  });
}

void CpuUpdates::sgd(const Tensor& weights, const Tensor& momentum, const ConstTensor& gradients,
                     const SgdStep& step) {
  const size_t count = weights.count();
  const bool has_momentum = momentum.memory.data != nullptr;
  float* const w = vector_of(weights, count);
  float* const m = has_momentum ? vector_of(momentum, count) : nullptr;
  const SgdFactors factors = {momentum_factors(step.momentum), float(step.lr),
                              float(step.weight_decay)};
  with_gradients(gradients, count, [&](size_t at, size_t here, const float* g) {
    kernels_.sgd({w + at, m == nullptr ? nullptr : m + at, g}, here, factors);
  });
}

void CpuUpdates::lion(const Tensor& weights, const Tensor& momentum, const ConstTensor& gradients,
                      const LionStep& step) {
  const size_t count = weights.count();
  float* const w = vector_of(weights, count);
  float* const m = vector_of(momentum, count);
  const LionFactors factors = lion_factors(step);
  with_gradients(gradients, count, [&](size_t at, size_t here, const float* g) {
    kernels_.lion({w + at, m + at, g}, here, factors);
  });
}

void CpuUpdates::momentum(const Tensor& direction, const Tensor& momentum,
                          const ConstTensor& gradients, const MomentumStep& step) {
  const size_t count = direction.count();
  float* const d = vector_of(direction, count);
  float* const m = vector_of(momentum, count);
  const MomentumFactors factors = momentum_factors(step);
  with_gradients(gradients, count, [&](size_t at, size_t here, const float* g) {
    kernels_.momentum({d + at, m + at, g}, here, factors);
  });
}

void CpuUpdates::sums_of_squares(const Tensor& of_rows, const Tensor& of_columns,
                                 const ConstTensor& x) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  const float* const from = matrix_of(x, rows, columns);
  if (of_rows.memory.data != nullptr) {
    double* const sums = doubles_of(of_rows, rows);
    pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row)
        sums[row] = kernels_.sum_of_squares(from + row * columns, columns);
    });
  }
  if (of_columns.memory.data == nullptr) return;
  double* const sums = doubles_of(of_columns, columns);
  pool_.parallel_for(columns, kLineFloats, [&](size_t begin, size_t end) {
    std::fill(sums + begin, sums + end, 0.0);
    for (size_t row = 0; row < rows; ++row)
      kernels_.add_squares(sums + begin, from + row * columns + begin, end - begin);
  });
}

void CpuUpdates::scale_rows_and_columns(const Tensor& out, const ConstTensor& x,
                                        const ConstTensor& rows, const ConstTensor& columns) {
  const size_t height = x.shape.rows();
  const size_t width = x.shape.columns();
  const float* const from = matrix_of(x, height, width);
  const float* const by_row = vector_of(rows, height);
  const float* const by_column = vector_of(columns, width);
  float* const to = matrix_of(out, height, width);
  pool_.parallel_for(height, 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      kernels_.scale(to + row * width, from + row * width, by_column, by_row[row], width);
  });
}

}  // namespace gxp
