// kernels/ops.h on the CPU: checks shapes, cuts the work into ranges that do not change its bits,
// and lets the thread pool call the kernels.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/cpu/attention/cpu_attention.h"
#include "kernels/cpu/cpu_float8.h"
#include "kernels/cpu/cpu_norms.h"
#include "kernels/cpu/cpu_updates.h"
#include "kernels/cpu/float_pieces.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_choice.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/rope_table.h"
#include "kernels/cpu/thread_buffers.h"
#include "kernels/ops_of_parts.h"
#include "kernels/tensor_data.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

// Elements that one thread takes at once: whole cache lines, so that no two threads share one.
constexpr size_t kGrain = 1024;
constexpr size_t kLineFloats = 16;
// Elements of one partial sum, which depend on nothing but the count.
constexpr size_t kSumBlock = 1 << 14;

// The table, or nullptr if there is none.
template <class AnyTensor>
auto positions_of(const AnyTensor& table, size_t positions, size_t columns) {
  const bool has_table = table.memory.data != nullptr;
  GXP_ASSERT(!has_table || table.shape.rows() >= positions);
  return has_table ? matrix_of(table, table.shape.rows(), columns) : nullptr;
}

class CpuOps final : public OpsOfParts<CpuOps> {
 public:
  CpuOps(ThreadPool& pool, Isa isa, const GemmKernels& products)
      : pool_(pool),
        products_(products.description),
        kernels_(cpu_kernels(isa)),
        gemm_(pool, products),
        left_(pool, kernels_.float8, kernels_.convert),
        right_(pool, kernels_.float8, kernels_.convert),
        buffers_(pool),
        norms_(pool, kernels_.rows, kernels_.convert),
        attention_(pool, kernels_.attention),
        updates_(pool, kernels_.elementwise, kernels_.convert) {}

  [[nodiscard]] std::string description() const override {
    const int threads = pool_.thread_count();
    return fmt::format("cpu {}, {} thread{}", products_, threads, threads == 1 ? "" : "s");
  }

  void matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) override {
    GXP_ASSERT((options.float8.a == Float8::kNone) == (options.float8.b == Float8::kNone));
    if (options.float8.a != Float8::kNone) {
      a = left_.round(a, options.float8.a);
      b = right_.round(b, options.float8.b);
    }
    GemmArgs args;
    args.m = out.shape.rows();
    args.n = out.shape.columns();
    args.k = options.transpose_a ? a.shape.rows() : a.shape.columns();
    args.transpose_a = options.transpose_a;
    args.transpose_b = options.transpose_b;
    args.a = data_of(a, options.transpose_a ? args.k : args.m);
    args.b = data_of(b, options.transpose_b ? args.n : args.k);
    GXP_ASSERT(a.count() == args.m * args.k && b.count() == args.k * args.n);
    GXP_ASSERT(!is_half(a.dtype) || !is_half(b.dtype) || a.dtype == b.dtype);
    args.a_type = a.dtype;
    args.b_type = b.dtype;
    args.c_type = out.dtype;
    args.lda = a.shape.columns();
    args.ldb = b.shape.columns();
    args.c = out.memory.data;
    args.ldc = args.n;
    args.accumulate = options.accumulate;
    if (options.bias.memory.data != nullptr) {
      GXP_ASSERT(options.bias.count() == args.n);
      args.bias = InPieces(kernels_.convert, options.bias).read(0, args.n, bias_.take(args.n));
    }
    if (options.residual.memory.data != nullptr)
      args.residual = matrix_of(options.residual, args.m, args.n);
    gemm_.run(args);
  }

  void bias_backward(Tensor dbias, ConstTensor dout) override { norms_.add_columns(dbias, dout); }

  void gelu_forward(Tensor out, ConstTensor x) override {
    GXP_ASSERT(out.count() == x.count());
    const InPieces from(kernels_.convert, x);
    const OutPieces to(kernels_.convert, out);
    for_pieces(x.count(), [&](size_t at, size_t count, Buffers& buffers) {
      kernels_.elementwise.gelu_forward(to.place(at, buffers[0]), from.read(at, count, buffers[1]),
                                        count);
      to.finish(at, count, buffers[0]);
    });
  }

  void gelu_backward(Tensor dx, Tensor activated, ConstTensor dout, ConstTensor x) override {
    GXP_ASSERT(dx.count() == x.count() && activated.count() == x.count());
    GXP_ASSERT(dout.count() == x.count());
    const InPieces from(kernels_.convert, x);
    const InPieces upstream(kernels_.convert, dout);
    const OutPieces gradient(kernels_.convert, dx);
    const OutPieces value(kernels_.convert, activated);
    for_pieces(x.count(), [&](size_t at, size_t count, Buffers& buffers) {
      const float* const inputs = from.read(at, count, buffers[0]);
      const float* const gradients = upstream.read(at, count, buffers[1]);
      kernels_.elementwise.gelu_backward(gradient.place(at, buffers[2]),
                                         value.place(at, buffers[3]), gradients, inputs, count);
      gradient.finish(at, count, buffers[2]);
      value.finish(at, count, buffers[3]);
    });
  }

  void swiglu_forward(Tensor out, ConstTensor gate, ConstTensor up) override {
    GXP_ASSERT(gate.count() == out.count() && up.count() == out.count());
    const InPieces gates(kernels_.convert, gate);
    const InPieces ups(kernels_.convert, up);
    const OutPieces to(kernels_.convert, out);
    for_pieces(out.count(), [&](size_t at, size_t count, Buffers& buffers) {
      kernels_.elementwise.swiglu_forward(to.place(at, buffers[0]),
                                          gates.read(at, count, buffers[1]),
                                          ups.read(at, count, buffers[2]), count);
      to.finish(at, count, buffers[0]);
    });
  }

  void swiglu_backward(Tensor dout, Tensor gate, Tensor up) override {
    const std::array<Tensor, 3> tensors = {dout, gate, up};
    for (const Tensor& tensor : tensors) GXP_ASSERT(tensor.count() == dout.count());
    for_pieces(dout.count(), [&](size_t at, size_t count, Buffers& buffers) {
      std::array<float*, 3> pieces{};
      for (size_t i = 0; i < 3; ++i) {
        InPieces(kernels_.convert, tensors[i]).read(at, count, buffers[i]);
        pieces[i] = OutPieces(kernels_.convert, tensors[i]).place(at, buffers[i]);
      }
      kernels_.elementwise.swiglu_backward(pieces[0], pieces[1], pieces[2], count);
      for (size_t i = 0; i < 3; ++i)
        OutPieces(kernels_.convert, tensors[i]).finish(at, count, buffers[i]);
    });
  }

  void rope_forward(Tensor x, int head_size, double theta) override {
    rotate(x, head_size, theta, 1.0f);
  }
  void rope_backward(Tensor dx, int head_size, double theta) override {
    rotate(dx, head_size, theta, -1.0f);
  }

  void embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                         ConstTensor position_table) override {
    const size_t columns = out.shape.columns();
    const size_t rows = out.shape.rows();
    const size_t positions = tokens.shape.columns();
    const size_t vocabulary = token_table.shape.rows();
    const int32_t* ids = indices_of(tokens, rows);
    const bool has_positions = position_table.memory.data != nullptr;
    GXP_ASSERT(token_table.shape.columns() == columns);
    GXP_ASSERT(!has_positions || (position_table.shape.rows() >= positions &&
                                  position_table.shape.columns() == columns));
    const InPieces by_token(kernels_.convert, token_table);
    const InPieces by_position(kernels_.convert, has_positions ? position_table : token_table);
    float* to = matrix_of(out, rows, columns);
    buffers_.parallel_for(rows, columns, [&](size_t begin, size_t end, float* buffer) {
      for (size_t row = begin; row < end; ++row) {
        const auto token = static_cast<size_t>(ids[row]);
        GXP_ASSERT(token < vocabulary);
        float* const sum = to + row * columns;
        const float* const from = by_token.read(token * columns, columns, sum);
        if (has_positions) {
          kernels_.rows.add(sum, from, by_position.read(row % positions * columns, columns, buffer),
                            columns);
        } else if (from != sum) {
          std::copy_n(from, columns, sum);
        }
      }
    });
  }

  void embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                          ConstTensor tokens) override {
    const size_t columns = dout.shape.columns();
    const size_t rows = dout.shape.rows();
    const size_t positions = tokens.shape.columns();
    const bool has_tokens = dtoken_table.memory.data != nullptr;
    const size_t vocabulary = has_tokens ? dtoken_table.shape.rows() : 0;
    const int32_t* ids = indices_of(tokens, rows);
    const float* from = matrix_of(dout, rows, columns);
    float* by_token = has_tokens ? matrix_of(dtoken_table, vocabulary, columns) : nullptr;
    float* by_position = positions_of(dposition_table, positions, columns);
    // By columns: every thread sees all tokens in order, and no two threads share an element.
    pool_.parallel_for(columns, kLineFloats, [&](size_t begin, size_t end) {
      for (size_t row = 0; row < rows; ++row) {
        const float* gradient = from + row * columns + begin;
        if (by_token != nullptr) {
          const auto token = static_cast<size_t>(ids[row]);
          GXP_ASSERT(token < vocabulary);
          float* const sum = by_token + token * columns + begin;
          kernels_.rows.add(sum, sum, gradient, end - begin);
        }
        if (by_position == nullptr) continue;
        float* position = by_position + row % positions * columns + begin;
        kernels_.rows.add(position, position, gradient, end - begin);
      }
    });
  }

  void classifier(Tensor logits, Tensor losses, ConstTensor targets, float scale) override {
    const size_t columns = logits.shape.columns();
    const size_t rows = logits.shape.rows();
    const InPieces from(kernels_.convert, logits);
    const OutPieces to(kernels_.convert, logits);
    float* loss = vector_of(losses, rows);
    const int32_t* target = indices_of(targets, rows);
    buffers_.parallel_for(rows, columns, [&](size_t begin, size_t end, float* buffer) {
      for (size_t row = begin; row < end; ++row) {
        GXP_ASSERT(target[row] < static_cast<int64_t>(columns));
        const size_t at = row * columns;
        from.read(at, columns, buffer);
        loss[row] = kernels_.classifier.loss_and_gradient(to.place(at, buffer), columns,
                                                          target[row], scale);
        to.finish(at, columns, buffer);
      }
    });
  }

  void classifier_loss(Tensor losses, ConstTensor logits, ConstTensor targets) override {
    const size_t columns = logits.shape.columns();
    const size_t rows = logits.shape.rows();
    const InPieces values(kernels_.convert, logits);
    float* loss = vector_of(losses, rows);
    const int32_t* target = indices_of(targets, rows);
    buffers_.parallel_for(rows, columns, [&](size_t begin, size_t end, float* buffer) {
      for (size_t row = begin; row < end; ++row) {
        GXP_ASSERT(target[row] < static_cast<int64_t>(columns));
        loss[row] = kernels_.classifier.loss(values.read(row * columns, columns, buffer), columns,
                                             target[row]);
      }
    });
  }

  double sum_of_squares(ConstTensor x) override {
    return sum_blocks(x, kernels_.elementwise.sum_of_squares);
  }
  void add_sum_of_squares(Tensor total, ConstTensor x) override {
    GXP_ASSERT(total.dtype == DType::kF64 && total.count() == 1);
    *total.data<double>() += sum_of_squares(x);
  }
  double sum(ConstTensor x) override { return sum_blocks(x, kernels_.elementwise.sum); }

  void convert(Tensor out, ConstTensor x) override {
    GXP_ASSERT(out.count() == x.count());
    const InPieces from(kernels_.convert, x);
    const OutPieces to(kernels_.convert, out);
    for_pieces(x.count(), [&](size_t at, size_t count, Buffers& buffers) {
      const float* const values = from.read(at, count, buffers[0]);
      if (to.needs_buffer())
        to.finish(at, count, values);
      else
        std::copy_n(values, count, to.place(at, nullptr));
    });
  }

  void round_stochastically(Tensor out, ConstTensor x, const RandomBits& bits) override {
    GXP_ASSERT(out.dtype == DType::kBF16 && out.count() == x.count());
    auto* const to = out.data<uint16_t>();
    const float* const from = vector_of(x, x.count());
    pool_.parallel_for(x.count(), kGrain, [&](size_t begin, size_t end) {
      for (size_t at = begin; at < end;) {
        const size_t element = bits.first + at;
        const size_t place = element % kRandomBlock;
        const size_t count = std::min(end - at, kRandomBlock - place);
        kernels_.convert.narrow_stochastically(to + at, from + at, count, uint32_t(place),
                                               random_block(bits.key, element / kRandomBlock));
        at += count;
      }
    });
  }

  void add(Tensor out, ConstTensor a, ConstTensor b) override {
    GXP_ASSERT(out.count() == a.count() && out.count() == b.count());
    const InPieces left(kernels_.convert, a);
    const InPieces right(kernels_.convert, b);
    const OutPieces to(kernels_.convert, out);
    for_pieces(out.count(), [&](size_t at, size_t count, Buffers& buffers) {
      const float* const x = left.read(at, count, buffers[0]);
      const float* const y = right.read(at, count, buffers[1]);
      float* const sums = to.place(at, buffers[2]);
      for (size_t i = 0; i < count; ++i) sums[i] = x[i] + y[i];
      to.finish(at, count, sums);
    });
  }

  void fill(Tensor out, float value) override {
    float* to = vector_of(out, out.count());
    pool_.parallel_for(out.count(), kGrain,
                       [&](size_t begin, size_t end) { std::fill(to + begin, to + end, value); });
  }

 private:
  friend class OpsOfParts<CpuOps>;

  // Where pieces of halves are floats: in L1.
  using Buffers = float[4][kGrain];

  // body(begin, count, buffers) for pieces of [0, count), on all threads.
  template <class Body>
  void for_pieces(size_t count, const Body& body) {
    pool_.parallel_for(count, kGrain, [&](size_t begin, size_t end) {
      alignas(64) Buffers buffers;
      for (size_t at = begin; at < end; at += kGrain) body(at, std::min(kGrain, end - at), buffers);
    });
  }

  static const void* data_of(const ConstTensor& matrix, size_t rows) {
    GXP_ASSERT(matrix.shape.rows() == rows && matrix.memory.space == MemorySpace::kHost);
    return matrix.memory.data;
  }

  // `direction` is 1 or -1.
  void rotate(const Tensor& x, int head_size, double theta, float direction) {
    GXP_ASSERT(x.shape.rank() == 3 && head_size > 0 && head_size % 2 == 0);
    const size_t positions = x.shape[1];
    const size_t columns = x.shape.columns();
    const size_t heads = columns / static_cast<size_t>(head_size);
    GXP_ASSERT(heads * static_cast<size_t>(head_size) == columns);
    const InPieces from(kernels_.convert, x);
    const OutPieces to(kernels_.convert, x);
    rope_.prepare(positions, static_cast<size_t>(head_size), theta);
    buffers_.parallel_for(x.shape.rows(), columns, [&](size_t begin, size_t end, float* buffer) {
      for (size_t row = begin; row < end; ++row) {
        Rotation rotation = rope_.at(row % positions);
        rotation.direction = direction;
        from.read(row * columns, columns, buffer);
        kernels_.rows.rotate(to.place(row * columns, buffer), heads, rotation);
        to.finish(row * columns, columns, buffer);
      }
    });
  }

  double sum_blocks(const ConstTensor& x, double (*sum_block)(const float*, size_t)) {
    const size_t count = x.count();
    const InPieces from(kernels_.convert, x);
    block_sums_.assign((count + kSumBlock - 1) / kSumBlock, 0.0);
    pool_.parallel_for(block_sums_.size(), 1, [&](size_t begin, size_t end) {
      alignas(64) float buffer[kSumBlock];
      for (size_t i = begin; i < end; ++i) {
        const size_t first = i * kSumBlock;
        const size_t here = std::min(kSumBlock, count - first);
        block_sums_[i] = sum_block(from.read(first, here, buffer), here);
      }
    });
    double total = 0;
    for (const double block_sum : block_sums_) total += block_sum;
    return total;
  }

  ThreadPool& pool_;
  std::string products_;
  const CpuKernels& kernels_;
  Gemm gemm_;
  CpuFloat8 left_, right_;  // operands of products
  ThreadBuffers buffers_;
  Scratch bias_;
  CpuNorms norms_;
  CpuAttention attention_;
  CpuUpdates updates_;
  RopeTable rope_;
  std::vector<double> block_sums_;
};

}  // namespace

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, const std::string& isa,
                                  const std::string& bf16_products) {
  const Isa chosen = choose_isa(isa);
  return std::make_unique<CpuOps>(pool, chosen, choose_gemm_kernels(chosen, bf16_products));
}

}  // namespace gxp
