#include "kernels/cpu/cpu_norms.h"

#include <algorithm>

#include "kernels/cpu/float_pieces.h"
#include "kernels/tensor_data.h"

namespace gxp {
namespace {

constexpr size_t kLineFloats = 16;

// The rows from `first` on, whose part of dout is `upstream`; means stay as they are.
NormGradients from_row(NormGradients all, size_t first, const float* upstream) {
  all.dx += first * all.columns;
  all.dout = upstream;
  all.x += first * all.columns;
  all.rstd += first;
  return all;
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

// body(first row, rows, their part of dout, the block's `width` sums) for each block; all sums, a
// row of `width` a block.
template <class Body>
const float* CpuNorms::sum_blocks(const ConstTensor& dout, const RowBlocks& blocks, size_t width,
                                  const Body& body) {
  const size_t columns = dout.shape.columns();
  const InPieces upstream(convert_, dout);
  float* const partial = partial_.take(blocks.count() * width);
  std::fill_n(partial, blocks.count() * width, 0.0f);
  buffers_.parallel_for(
      blocks.count(), blocks.block * columns, [&](size_t begin, size_t end, float* buffer) {
        for (size_t i = begin; i < end; ++i) {
          const size_t first = blocks.begin(i);
          const size_t rows = blocks.end(i) - first;
          body(first, rows, upstream.read(first * columns, rows * columns, buffer),
               partial + i * width);
        }
      });
  return partial;
}

void CpuNorms::round_and_sum(const StreamOutputs& out, ConstTensor x) {
  if (out.rounded.memory.data != nullptr) convert(out.rounded, x);
  if (out.column_sums.memory.data == nullptr) return;
  const size_t columns = x.shape.columns();
  const RowBlocks blocks(x.shape.rows());
  const float* partial =
      sum_blocks(x, blocks, columns, [&](size_t, size_t rows, const float* values, float* sums) {
        kernels_.add_rows(sums, values, rows, columns, columns);
      });
  add_partial_sums(out.column_sums, partial, blocks, {0, columns, columns});
}

void CpuNorms::layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x,
                                 ConstTensor weight, ConstTensor bias, float eps) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  const float* const from = matrix_of(x, rows, columns);
  float* const means = vector_of(mean, rows);
  float* const rstds = vector_of(rstd, rows);
  pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const RowStatistics statistics = kernels_.statistics(from + row * columns, columns, eps);
      means[row] = statistics.mean;
      rstds[row] = statistics.rstd;
    }
  });
  layernorm_apply(out, x, mean, rstd, weight, bias);
}

void CpuNorms::layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                               ConstTensor weight, ConstTensor bias) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  GXP_ASSERT(out.shape.rows() == rows && out.shape.columns() == columns);
  const float* const from = matrix_of(x, rows, columns);
  const float* const means = vector_of(mean, rows);
  const float* const rstds = vector_of(rstd, rows);
  const float* const weights = floats_of(weight, columns, weight_);
  const float* const biases = floats_of(bias, columns, bias_);
  const OutPieces to(convert_, out);
  buffers_.parallel_for(rows, columns, [&](size_t begin, size_t end, float* buffer) {
    for (size_t row = begin; row < end; ++row) {
      const size_t at = row * columns;
      kernels_.layernorm_row({to.place(at, buffer), from + at, weights, biases, columns},
                             {means[row], rstds[row]});
      to.finish(at, columns, buffer);
    }
  });
}

NormGradients CpuNorms::gradients_of(const NormBackward& norm) {
  const size_t rows = norm.x.shape.rows();
  const size_t columns = norm.x.shape.columns();
  GXP_ASSERT(norm.dout.shape.rows() == rows && norm.dout.shape.columns() == columns);
  return {.dx = matrix_of(norm.dx, rows, columns),
          .dout = nullptr,
          .x = matrix_of(norm.x, rows, columns),
          .mean = nullptr,
          .rstd = vector_of(norm.rstd, rows),
          .weight = factors_of(norm.weight, columns, norm.form),
          .columns = columns};
}

void CpuNorms::layernorm_backward(const NormBackward& norm) {
  NormGradients all = gradients_of(norm);
  all.mean = vector_of(norm.mean, norm.x.shape.rows());
  const size_t columns = all.columns;
  const RowBlocks blocks(norm.x.shape.rows());
  const auto of_block = [&](size_t first, size_t count, const float* upstream, float* sums) {
    NormGradients args = from_row(all, first, upstream);
    args.mean += first;
    kernels_.layernorm_backward(args, 0, count, sums, sums + columns);
  };
  const float* partial = sum_blocks(norm.dout, blocks, 2 * columns, of_block);
  add_partial_sums(norm.dweight, partial, blocks, {0, columns, 2 * columns});
  add_partial_sums(norm.dbias, partial, blocks, {columns, columns, 2 * columns});
  round_and_sum(norm.also, norm.dx);
}

void CpuNorms::rmsnorm_forward(Tensor out, Tensor rstd, ConstTensor x, ConstTensor weight,
                               float eps, RmsWeight form) {
  const size_t columns = x.shape.columns();
  const float* const from = matrix_of(x, x.shape.rows(), columns);
  float* const rstds = vector_of(rstd, x.shape.rows());
  pool_.parallel_for(x.shape.rows(), 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      rstds[row] = kernels_.rms_rstd(from + row * columns, columns, eps);
  });
  rmsnorm_apply(out, x, rstd, weight, form);
}

void CpuNorms::rmsnorm_apply(Tensor out, ConstTensor x, ConstTensor rstd, ConstTensor weight,
                             RmsWeight form) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  GXP_ASSERT(out.shape.rows() == rows && out.shape.columns() == columns);
  const float* const from = matrix_of(x, rows, columns);
  const float* const rstds = vector_of(rstd, rows);
  const float* const factors = factors_of(weight, columns, form);
  const OutPieces to(convert_, out);
  buffers_.parallel_for(rows, columns, [&](size_t begin, size_t end, float* buffer) {
    for (size_t row = begin; row < end; ++row) {
      const size_t at = row * columns;
      kernels_.rmsnorm_row(to.place(at, buffer), from + at, factors, columns, rstds[row]);
      to.finish(at, columns, buffer);
    }
  });
}

void CpuNorms::rmsnorm_backward(const NormBackward& norm) {
  const NormGradients all = gradients_of(norm);
  const RowBlocks blocks(norm.x.shape.rows());
  const auto of_block = [&](size_t first, size_t count, const float* upstream, float* sums) {
    kernels_.rmsnorm_backward(from_row(all, first, upstream), 0, count, sums);
  };
  const float* partial = sum_blocks(norm.dout, blocks, all.columns, of_block);
  add_partial_sums(norm.dweight, partial, blocks, {0, all.columns, all.columns});
  round_and_sum(norm.also, norm.dx);
}

const float* CpuNorms::floats_of(const ConstTensor& vector, size_t count, Scratch& scratch) const {
  GXP_ASSERT(vector.count() == count);
  return InPieces(convert_, vector).read(0, count, scratch.take(count));
}

const float* CpuNorms::factors_of(const ConstTensor& weight, size_t count, RmsWeight form) {
  const float* const stored = floats_of(weight, count, weight_);
  if (form == RmsWeight::kStored) return stored;
  float* const factors = weight_.take(count);  // may be `stored`
  std::transform(stored, stored + count, factors, [](float value) { return 1.0f + value; });
  return factors;
}

void CpuNorms::add_partial_sums(const Tensor& gradient, const float* partial,
                                const RowBlocks& blocks, const Columns& columns) {
  if (gradient.memory.data == nullptr) return;
  float* const to = vector_of(gradient, columns.count);
  pool_.parallel_for(columns.count, kLineFloats, [&](size_t begin, size_t end) {
    kernels_.add_rows(to + begin, partial + columns.first + begin, blocks.count(), end - begin,
                      columns.stride);
  });
}

}  // namespace gxp
