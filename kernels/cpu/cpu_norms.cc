#include "kernels/cpu/cpu_norms.h"

#include <algorithm>

#include "kernels/tensor_data.h"

namespace gxp {
namespace {

constexpr size_t kLineFloats = 16;

LayerNormRow first_row(const Tensor& out, const ConstTensor& x, const ConstTensor& weight,
                       const ConstTensor& bias) {
  const size_t columns = x.shape.columns();
  return {matrix_of(out, x.shape.rows(), columns), matrix_of(x, x.shape.rows(), columns),
          vector_of(weight, columns), vector_of(bias, columns), columns};
}

LayerNormRow row_of(LayerNormRow first, size_t row) {
  first.out += row * first.columns;
  first.x += row * first.columns;
  return first;
}

}  // namespace

// Rows cut into blocks whose sums are added in order: the blocks depend on the rows alone, so the
// sum does not depend on the thread count. At most 64 blocks, so that the partial sums stay small.
struct CpuNorms::RowBlocks {
  explicit RowBlocks(size_t row_count)
      : rows(row_count), block(std::max<size_t>(64, (row_count + 63) / 64)) {}
  [[nodiscard]] size_t count() const { return (rows + block - 1) / block; }
  [[nodiscard]] size_t begin(size_t i) const { return i * block; }
  [[nodiscard]] size_t end(size_t i) const { return std::min(rows, (i + 1) * block); }
  size_t rows, block;
};

void CpuNorms::add_columns(const Tensor& dbias, const ConstTensor& dout) {
  const size_t columns = dout.shape.columns();
  const float* from = matrix_of(dout, dout.shape.rows(), columns);
  float* to = vector_of(dbias, columns);
  const RowBlocks blocks(dout.shape.rows());
  float* partial = partial_sums(blocks, columns);
  pool_.parallel_for(blocks.count(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      kernels_.add_rows(partial + i * columns, from + blocks.begin(i) * columns,
                        blocks.end(i) - blocks.begin(i), columns, columns);
    }
  });
  add_partial_sums(to, partial, blocks, {0, columns, columns});
}

void CpuNorms::layernorm_forward(const Tensor& out, const Tensor& mean, const Tensor& rstd,
                                 const ConstTensor& x, const ConstTensor& weight,
                                 const ConstTensor& bias, float eps) {
  const size_t rows = x.shape.rows();
  const LayerNormRow first = first_row(out, x, weight, bias);
  float* const means = vector_of(mean, rows);
  float* const rstds = vector_of(rstd, rows);
  pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const LayerNormRow at = row_of(first, row);
      const RowStatistics statistics = kernels_.statistics(at.x, at.columns, eps);
      kernels_.layernorm_row(at, statistics);
      means[row] = statistics.mean;
      rstds[row] = statistics.rstd;
    }
  });
}

void CpuNorms::layernorm_apply(const Tensor& out, const ConstTensor& x, const ConstTensor& mean,
                               const ConstTensor& rstd, const ConstTensor& weight,
                               const ConstTensor& bias) {
  const size_t rows = x.shape.rows();
  const LayerNormRow first = first_row(out, x, weight, bias);
  const float* const means = vector_of(mean, rows);
  const float* const rstds = vector_of(rstd, rows);
  pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      kernels_.layernorm_row(row_of(first, row), {means[row], rstds[row]});
  });
}

void CpuNorms::layernorm_backward(const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                                  const ConstTensor& dout, const ConstTensor& x,
                                  const ConstTensor& mean, const ConstTensor& rstd,
                                  const ConstTensor& weight) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  const LayerNormGradients args = {.dx = matrix_of(dx, rows, columns),
                                   .dout = matrix_of(dout, rows, columns),
                                   .x = matrix_of(x, rows, columns),
                                   .mean = vector_of(mean, rows),
                                   .rstd = vector_of(rstd, rows),
                                   .weight = vector_of(weight, columns),
                                   .columns = columns};
  const RowBlocks blocks(rows);
  float* partial = partial_sums(blocks, 2 * columns);
  pool_.parallel_for(blocks.count(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      float* sums = partial + i * 2 * columns;
      kernels_.layernorm_backward(args, blocks.begin(i), blocks.end(i), sums, sums + columns);
    }
  });
  add_partial_sums(vector_of(dweight, columns), partial, blocks, {0, columns, 2 * columns});
  add_partial_sums(vector_of(dbias, columns), partial, blocks, {columns, columns, 2 * columns});
}

void CpuNorms::rmsnorm_forward(const Tensor& out, const Tensor& rstd, const ConstTensor& x,
                               const ConstTensor& weight, float eps) {
  const size_t columns = x.shape.columns();
  const float* const from = matrix_of(x, x.shape.rows(), columns);
  float* const rstds = vector_of(rstd, x.shape.rows());
  pool_.parallel_for(x.shape.rows(), 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      rstds[row] = kernels_.rms_rstd(from + row * columns, columns, eps);
  });
  rmsnorm_apply(out, x, rstd, weight);
}

void CpuNorms::rmsnorm_apply(const Tensor& out, const ConstTensor& x, const ConstTensor& rstd,
                             const ConstTensor& weight) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  const float* const from = matrix_of(x, rows, columns);
  const float* const rstds = vector_of(rstd, rows);
  const float* const factors = vector_of(weight, columns);
  float* const to = matrix_of(out, rows, columns);
  pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      kernels_.rmsnorm_row(to + row * columns, from + row * columns, factors, columns, rstds[row]);
  });
}

void CpuNorms::rmsnorm_backward(const Tensor& dx, const Tensor& dweight, const ConstTensor& dout,
                                const ConstTensor& x, const ConstTensor& rstd,
                                const ConstTensor& weight) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  const RmsNormGradients args = {.dx = matrix_of(dx, rows, columns),
                                 .dout = matrix_of(dout, rows, columns),
                                 .x = matrix_of(x, rows, columns),
                                 .rstd = vector_of(rstd, rows),
                                 .weight = vector_of(weight, columns),
                                 .columns = columns};
  const RowBlocks blocks(rows);
  float* partial = partial_sums(blocks, columns);
  pool_.parallel_for(blocks.count(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      kernels_.rmsnorm_backward(args, blocks.begin(i), blocks.end(i), partial + i * columns);
  });
  add_partial_sums(vector_of(dweight, columns), partial, blocks, {0, columns, columns});
}

float* CpuNorms::partial_sums(const RowBlocks& blocks, size_t columns) {
  float* sums = partial_.take(blocks.count() * columns);
  std::fill_n(sums, blocks.count() * columns, 0.0f);
  return sums;
}

void CpuNorms::add_partial_sums(float* to, const float* partial, const RowBlocks& blocks,
                                const Columns& columns) {
  pool_.parallel_for(columns.count, kLineFloats, [&](size_t begin, size_t end) {
    kernels_.add_rows(to + begin, partial + columns.first + begin, blocks.count(), end - begin,
                      columns.stride);
  });
}

}  // namespace gxp
