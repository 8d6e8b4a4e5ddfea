// kernels/ops.h on the CPU: checks shapes, cuts the work into ranges that do not change its bits,
// and lets the thread pool call the kernels.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/scratch.h"
#include "kernels/math/adamw_factors.h"
#include "kernels/ops.h"
#include "kernels/tensor_data.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

// Elements that one thread takes at once: whole cache lines, so that no two threads share one.
constexpr size_t kGrain = 1024;
// Elements of one partial sum, which depend on nothing but the count.
constexpr size_t kSumBlock = 1 << 14;

// Rows cut into blocks whose sums are added in order: the blocks depend on the rows alone, so the
// sum does not depend on the thread count. At most 64 blocks, so that the partial sums stay small.
struct RowBlocks {
  explicit RowBlocks(size_t row_count)
      : rows(row_count), block(std::max<size_t>(64, (row_count + 63) / 64)) {}
  [[nodiscard]] size_t count() const { return (rows + block - 1) / block; }
  [[nodiscard]] size_t begin(size_t i) const { return i * block; }
  [[nodiscard]] size_t end(size_t i) const { return std::min(rows, (i + 1) * block); }
  size_t rows, block;
};

AttentionShape attention_shape(const Shape& qkv, int heads) {
  GXP_ASSERT(qkv.rank() == 3 && qkv[2] % 3 == 0 && heads > 0);
  const AttentionShape shape = {qkv[1], qkv[2] / 3, static_cast<size_t>(heads)};
  GXP_ASSERT(shape.channels % shape.heads == 0);
  return shape;
}

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

class CpuOps final : public Ops {
 public:
  CpuOps(ThreadPool& pool, Isa isa)
      : pool_(pool),
        isa_(isa),
        kernels_(cpu_kernels(isa)),
        gemm_(pool, isa),
        thread_scratch_(static_cast<size_t>(pool.thread_count())) {}

  [[nodiscard]] std::string description() const override {
    const int threads = pool_.thread_count();
    return fmt::format("cpu {}, {} thread{}", to_string(isa_), threads, threads == 1 ? "" : "s");
  }

  void matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) override {
    GemmArgs args;
    args.m = out.shape.rows();
    args.n = out.shape.columns();
    args.k = options.transpose_a ? a.shape.rows() : a.shape.columns();
    args.transpose_a = options.transpose_a;
    args.transpose_b = options.transpose_b;
    args.a = options.transpose_a ? matrix_of(a, args.k, args.m) : matrix_of(a, args.m, args.k);
    args.b = options.transpose_b ? matrix_of(b, args.n, args.k) : matrix_of(b, args.k, args.n);
    args.lda = a.shape.columns();
    args.ldb = b.shape.columns();
    args.c = matrix_of(out, args.m, args.n);
    args.ldc = args.n;
    args.accumulate = options.accumulate;
    if (options.bias.memory.data != nullptr) args.bias = vector_of(options.bias, args.n);
    if (options.residual.memory.data != nullptr)
      args.residual = matrix_of(options.residual, args.m, args.n);
    gemm_.run(args);
  }

  void bias_backward(Tensor dbias, ConstTensor dout) override {
    const size_t columns = dout.shape.columns();
    const float* from = matrix_of(dout, dout.shape.rows(), columns);
    float* to = vector_of(dbias, columns);
    const RowBlocks blocks(dout.shape.rows());
    float* partial = partial_sums(blocks, columns);
    pool_.parallel_for(blocks.count(), 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        kernels_.rows.add_rows(partial + i * columns, from + blocks.begin(i) * columns,
                               blocks.end(i) - blocks.begin(i), columns, columns);
      }
    });
    add_partial_sums(to, partial, blocks, {0, columns, columns});
  }

  void layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x, ConstTensor weight,
                         ConstTensor bias, float eps) override {
    const size_t rows = x.shape.rows();
    const LayerNormRow first = first_row(out, x, weight, bias);
    float* const means = vector_of(mean, rows);
    float* const rstds = vector_of(rstd, rows);
    pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        const LayerNormRow at = row_of(first, row);
        const RowStatistics statistics = kernels_.rows.statistics(at.x, at.columns, eps);
        kernels_.rows.layernorm_row(at, statistics);
        means[row] = statistics.mean;
        rstds[row] = statistics.rstd;
      }
    });
  }

  void layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                       ConstTensor weight, ConstTensor bias) override {
    const size_t rows = x.shape.rows();
    const LayerNormRow first = first_row(out, x, weight, bias);
    const float* const means = vector_of(mean, rows);
    const float* const rstds = vector_of(rstd, rows);
    pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row)
        kernels_.rows.layernorm_row(row_of(first, row), {means[row], rstds[row]});
    });
  }

  void layernorm_backward(Tensor dx, Tensor dweight, Tensor dbias, ConstTensor dout, ConstTensor x,
                          ConstTensor mean, ConstTensor rstd, ConstTensor weight) override {
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
        kernels_.rows.layernorm_backward(args, blocks.begin(i), blocks.end(i), sums,
                                         sums + columns);
      }
    });
    add_partial_sums(vector_of(dweight, columns), partial, blocks, {0, columns, 2 * columns});
    add_partial_sums(vector_of(dbias, columns), partial, blocks, {columns, columns, 2 * columns});
  }

  void gelu_forward(Tensor out, ConstTensor x) override {
    const float* from = x.data<float>();
    float* to = vector_of(out, x.count());
    pool_.parallel_for(x.count(), kGrain, [&](size_t begin, size_t end) {
      kernels_.elementwise.gelu_forward(to + begin, from + begin, end - begin);
    });
  }

  void gelu_backward(Tensor dx, Tensor activated, ConstTensor dout, ConstTensor x) override {
    const size_t count = x.count();
    const float* from = vector_of(x, count);
    const float* upstream = vector_of(dout, count);
    float* gradient = vector_of(dx, count);
    float* value = vector_of(activated, count);
    pool_.parallel_for(count, kGrain, [&](size_t begin, size_t end) {
      kernels_.elementwise.gelu_backward(gradient + begin, value + begin, upstream + begin,
                                         from + begin, end - begin);
    });
  }

  void attention_forward(Tensor out, Tensor lse, ConstTensor qkv, int heads) override {
    const AttentionShape shape = attention_shape(qkv.shape, heads);
    const size_t rows = qkv.shape.rows();
    const size_t pairs = qkv.shape[0] * shape.heads;
    const AttentionForward args = {.shape = shape,
                                   .qkv = matrix_of(qkv, rows, 3 * shape.channels),
                                   .out = matrix_of(out, rows, shape.channels),
                                   .lse = vector_of(lse, pairs * shape.positions)};
    for_each_pair(pairs, shape, [&](size_t pair, float* scratch) {
      kernels_.attention.forward(args, pair, scratch);
    });
  }

  void attention_backward(Tensor dqkv, Tensor scratch, ConstTensor dout, ConstTensor qkv,
                          ConstTensor out, ConstTensor lse, int heads) override {
    const AttentionShape shape = attention_shape(qkv.shape, heads);
    const size_t rows = qkv.shape.rows();
    const size_t pairs = qkv.shape[0] * shape.heads;
    const AttentionBackward args = {.shape = shape,
                                    .qkv = matrix_of(qkv, rows, 3 * shape.channels),
                                    .out = matrix_of(out, rows, shape.channels),
                                    .lse = vector_of(lse, pairs * shape.positions),
                                    .dout = matrix_of(dout, rows, shape.channels),
                                    .dqkv = matrix_of(dqkv, rows, 3 * shape.channels),
                                    .delta = vector_of(scratch, pairs * shape.positions)};
    for_each_pair(pairs, shape, [&](size_t pair, float* pair_scratch) {
      kernels_.attention.backward(args, pair, pair_scratch);
    });
  }

  void embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                         ConstTensor position_table) override {
    const size_t columns = out.shape.columns();
    const size_t rows = out.shape.rows();
    const size_t positions = tokens.shape.columns();
    const size_t vocabulary = token_table.shape.rows();
    GXP_ASSERT(position_table.shape.rows() >= positions);
    const int32_t* ids = indices_of(tokens, rows);
    const float* by_token = matrix_of(token_table, vocabulary, columns);
    const float* by_position = matrix_of(position_table, position_table.shape.rows(), columns);
    float* to = matrix_of(out, rows, columns);
    pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        const auto token = static_cast<size_t>(ids[row]);
        GXP_ASSERT(token < vocabulary);
        kernels_.rows.add(to + row * columns, by_token + token * columns,
                          by_position + row % positions * columns, columns);
      }
    });
  }

  void embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                          ConstTensor tokens) override {
    const size_t columns = dout.shape.columns();
    const size_t rows = dout.shape.rows();
    const size_t positions = tokens.shape.columns();
    const size_t vocabulary = dtoken_table.shape.rows();
    GXP_ASSERT(dposition_table.shape.rows() >= positions);
    const int32_t* ids = indices_of(tokens, rows);
    const float* from = matrix_of(dout, rows, columns);
    float* by_token = matrix_of(dtoken_table, vocabulary, columns);
    float* by_position = matrix_of(dposition_table, dposition_table.shape.rows(), columns);
    // By columns: every thread sees all tokens in order, and no two threads share an element.
    pool_.parallel_for(columns, kLineFloats, [&](size_t begin, size_t end) {
      for (size_t row = 0; row < rows; ++row) {
        const auto token = static_cast<size_t>(ids[row]);
        GXP_ASSERT(token < vocabulary);
        const float* gradient = from + row * columns + begin;
        kernels_.rows.add(by_token + token * columns + begin, by_token + token * columns + begin,
                          gradient, end - begin);
        float* position = by_position + row % positions * columns + begin;
        kernels_.rows.add(position, position, gradient, end - begin);
      }
    });
  }

  void classifier(Tensor logits, Tensor losses, ConstTensor targets, float scale) override {
    const size_t columns = logits.shape.columns();
    const size_t rows = logits.shape.rows();
    float* values = matrix_of(logits, rows, columns);
    float* loss = vector_of(losses, rows);
    const int32_t* target = indices_of(targets, rows);
    pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        GXP_ASSERT(target[row] < static_cast<int64_t>(columns));
        loss[row] = kernels_.classifier.loss_and_gradient(values + row * columns, columns,
                                                          target[row], scale);
      }
    });
  }

  void classifier_loss(Tensor losses, ConstTensor logits, ConstTensor targets) override {
    const size_t columns = logits.shape.columns();
    const size_t rows = logits.shape.rows();
    const float* values = matrix_of(logits, rows, columns);
    float* loss = vector_of(losses, rows);
    const int32_t* target = indices_of(targets, rows);
    pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        GXP_ASSERT(target[row] < static_cast<int64_t>(columns));
        loss[row] = kernels_.classifier.loss(values + row * columns, columns, target[row]);
      }
    });
  }

  void adamw(Tensor weights, Tensor first, Tensor second, ConstTensor gradients,
             const AdamWStep& step) override {
    const size_t count = weights.count();
    const AdamWArrays arrays = {vector_of(weights, count), vector_of(first, count),
                                vector_of(second, count), vector_of(gradients, count)};
    const AdamWFactors factors = adamw_factors(step);
    pool_.parallel_for(count, kGrain, [&](size_t begin, size_t end) {
      kernels_.elementwise.adamw(arrays, begin, end, factors);
    });
  }

  double sum_of_squares(ConstTensor x) override {
    return sum_blocks(x, kernels_.elementwise.sum_of_squares);
  }
  double sum(ConstTensor x) override { return sum_blocks(x, kernels_.elementwise.sum); }

  void fill(Tensor out, float value) override {
    float* to = vector_of(out, out.count());
    pool_.parallel_for(out.count(), kGrain,
                       [&](size_t begin, size_t end) { std::fill(to + begin, to + end, value); });
  }

 private:
  static constexpr size_t kLineFloats = 16;

  // Columns [first, first + count) of partial sums whose rows are `stride` floats apart.
  struct Columns {
    size_t first, count, stride;
  };

  float* partial_sums(const RowBlocks& blocks, size_t columns) {
    float* sums = partial_.take(blocks.count() * columns);
    std::fill_n(sums, blocks.count() * columns, 0.0f);
    return sums;
  }

  void add_partial_sums(float* to, const float* partial, const RowBlocks& blocks,
                        const Columns& columns) {
    pool_.parallel_for(columns.count, kLineFloats, [&](size_t begin, size_t end) {
      kernels_.rows.add_rows(to + begin, partial + columns.first + begin, blocks.count(),
                             end - begin, columns.stride);
    });
  }

  // body(pair, scratch), each thread with its own scratch.
  template <class Body>
  void for_each_pair(size_t pairs, const AttentionShape& shape, const Body& body) {
    const size_t floats = attention_scratch_floats(shape);
    const size_t threads = thread_scratch_.size();
    pool_.run([&](int thread) {
      const auto t = static_cast<size_t>(thread);
      float* scratch = thread_scratch_[t].take(floats);
      for (size_t pair = pairs * t / threads; pair < pairs * (t + 1) / threads; ++pair)
        body(pair, scratch);
    });
  }

  double sum_blocks(const ConstTensor& x, double (*sum_block)(const float*, size_t)) {
    const size_t count = x.count();
    const float* from = vector_of(x, count);
    block_sums_.assign((count + kSumBlock - 1) / kSumBlock, 0.0);
    pool_.parallel_for(block_sums_.size(), 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t first = i * kSumBlock;
        block_sums_[i] = sum_block(from + first, std::min(kSumBlock, count - first));
      }
    });
    double total = 0;
    for (const double block_sum : block_sums_) total += block_sum;
    return total;
  }

  ThreadPool& pool_;
  Isa isa_;
  const CpuKernels& kernels_;
  Gemm gemm_;
  std::vector<Scratch> thread_scratch_;  // one a thread
  Scratch partial_;
  std::vector<double> block_sums_;
};

}  // namespace

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, const std::string& isa) {
  return std::make_unique<CpuOps>(pool, choose_isa(isa));
}

}  // namespace gxp
