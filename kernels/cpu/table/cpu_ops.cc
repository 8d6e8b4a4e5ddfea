// kernels/ops.h on the CPU: checks shapes, cuts the work into ranges that do not change its bits,
// and lets the thread pool call the kernels.
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/attention/cpu_attention.h"
#include "kernels/cpu/cpu_float8.h"
#include "kernels/cpu/cpu_norms.h"
#include "kernels/cpu/element_pieces.h"
#include "kernels/cpu/fingerprint.h"
#include "kernels/cpu/float_pieces.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_choice.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed_moment.h"
#include "kernels/cpu/rope_table.h"
#include "kernels/cpu/thread_buffers.h"
#include "kernels/elementwise.h"
#include "kernels/math/dynamic_map.h"
#include "kernels/tensor_data.h"
#include "kernels/turned_columns.h"
#include "lib/base/error.h"
#include "lib/base/state_block.h"

namespace gxp {
namespace {

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

double* doubles_of(const Tensor& tensor, size_t count) {
  GXP_ASSERT(tensor.dtype == DType::kF64 && tensor.count() == count);
  return tensor.data<double>();
}

// The position in its document of a row's token; `begins` may be null.
size_t position_of(size_t row, size_t positions, const int32_t* begins) {
  return row % positions - (begins == nullptr ? 0 : size_t(begins[row]));
}

class CpuOps final : public CpuNorms, public CpuAttention {
 public:
  CpuOps(ThreadPool& pool, Isa isa, const GemmKernels& products)
      : CpuNorms(pool, cpu_kernels(isa)),
        CpuAttention(pool, cpu_kernels(isa).attention),
        pool_(pool),
        products_(products.description),
        kernels_(cpu_kernels(isa)),
        gemm_(pool, products),
        left_(pool, kernels_.float8, kernels_.convert),
        right_(pool, kernels_.float8, kernels_.convert),
        buffers_(pool) {}

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

  void apply(const ElementwiseCall& call) override {
    const ElementPieces elements(call, kernels_.convert);
    const auto kernel = kernels_.elementwise.apply[call.math.index()];
    const void* const settings =
        std::visit([](const auto& math) -> const void* { return &math; }, call.math);
    pool_.parallel_for(call.count(), kPieceElements, [&](size_t begin, size_t end) {
      alignas(64) PieceBuffers buffers;
      const size_t piece = elements.need_buffers() ? kPieceElements : end - begin;
      for (size_t at = begin; at < end; at += piece) {
        const size_t count = std::min(piece, end - at);
        kernel(elements.read(at, count, buffers).data(), count, settings);
        elements.finish(at, count, buffers);
      }
    });
  }

  void rotate(Tensor x, const HeadColumns& heads, const Rotary& rotary, float direction,
              const RotatedPositions& which) override {
    const size_t columns = x.shape.columns();
    const size_t turned = turned_columns(x.shape, heads, rotary);
    const size_t positions = x.shape[1];
    const int32_t* const begins = indices_or_null(which.document_begin, x.shape.rows());
    const InPieces from(kernels_.convert, x);
    const OutPieces to(kernels_.convert, x);
    const RopeTable& table = rope_.table(rotary, which.first + positions);
    buffers_.parallel_for(x.shape.rows(), turned, [&](size_t begin, size_t end, float* buffer) {
      for (size_t row = begin; row < end; ++row) {
        const size_t at = row * columns + heads.first;
        Rotation rotation = table.at(which.first + position_of(row, positions, begins));
        rotation.direction = direction;
        from.read(at, turned, buffer);
        kernels_.rows.rotate(to.place(at, buffer), heads.count, heads.stride, rotation);
        to.finish(at, turned, buffer);
      }
    });
  }

  void embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                         ConstTensor position_table, ConstTensor document_begin) override {
    const size_t columns = out.shape.columns();
    const size_t rows = out.shape.rows();
    const size_t positions = tokens.shape.columns();
    const size_t vocabulary = token_table.shape.rows();
    const int32_t* ids = indices_of(tokens, rows);
    const int32_t* const begins = indices_or_null(document_begin, rows);
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
          const size_t position = position_of(row, positions, begins);
          kernels_.rows.add(sum, from, by_position.read(position * columns, columns, buffer),
                            columns);
        } else if (from != sum) {
          std::copy_n(from, columns, sum);
        }
      }
    });
  }

  void embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                          ConstTensor tokens, int padding, ConstTensor document_begin) override {
    const size_t columns = dout.shape.columns();
    const size_t rows = dout.shape.rows();
    const size_t positions = tokens.shape.columns();
    const bool has_tokens = dtoken_table.memory.data != nullptr;
    const size_t vocabulary = has_tokens ? dtoken_table.shape.rows() : 0;
    const int32_t* ids = indices_of(tokens, rows);
    const int32_t* const begins = indices_or_null(document_begin, rows);
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
          if (ids[row] != padding) kernels_.rows.add(sum, sum, gradient, end - begin);
        }
        if (by_position == nullptr) continue;
        float* position = by_position + position_of(row, positions, begins) * columns + begin;
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

  uint64_t fingerprint(std::span<const ConstTensor> parts) override {
    return fingerprint_of(pool_, parts);
  }

  void sums_of_squares(Tensor of_rows, Tensor of_columns, ConstTensor x) override {
    const size_t rows = x.shape.rows();
    const size_t columns = x.shape.columns();
    const float* const from = matrix_of(x, rows, columns);
    if (of_rows.memory.data != nullptr) {
      double* const sums = doubles_of(of_rows, rows);
      pool_.parallel_for(rows, 1, [&](size_t begin, size_t end) {
        for (size_t row = begin; row < end; ++row)
          sums[row] = kernels_.elementwise.sum_of_squares(from + row * columns, columns);
      });
    }
    if (of_columns.memory.data == nullptr) return;
    double* const sums = doubles_of(of_columns, columns);
    pool_.parallel_for(columns, kLineFloats, [&](size_t begin, size_t end) {
      std::fill(sums + begin, sums + end, 0.0);
      for (size_t row = 0; row < rows; ++row)
        kernels_.elementwise.add_squares(sums + begin, from + row * columns + begin, end - begin);
    });
  }

  void scale_rows_and_columns(Tensor out, ConstTensor x, ConstTensor rows,
                              ConstTensor columns) override {
    const size_t height = x.shape.rows();
    const size_t width = x.shape.columns();
    const float* const from = matrix_of(x, height, width);
    const float* const by_row = vector_of(rows, height);
    const float* const by_column = vector_of(columns, width);
    float* const to = matrix_of(out, height, width);
    pool_.parallel_for(height, 1, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row)
        kernels_.elementwise.scale(to + row * width, from + row * width, by_column, by_row[row],
                                   width);
    });
  }

  void convert(Tensor out, ConstTensor x) override {
    GXP_ASSERT(out.count() == x.count());
    const InPieces from(kernels_.convert, x);
    const OutPieces to(kernels_.convert, out);
    by_pieces(x.count(), [&](size_t at, size_t count, float* buffer) {
      const float* const values = from.read(at, count, buffer);
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
    pool_.parallel_for(x.count(), kPieceElements, [&](size_t begin, size_t end) {
      narrow_stochastically(kernels_.convert, to + begin, from + begin, end - begin,
                            {bits.key, bits.first + begin});
    });
  }

  void drop_out(Tensor out, ConstTensor x, const Dropout& dropout) override {
    GXP_ASSERT(out.dtype == x.dtype && out.count() == x.count());
    const InPieces from(kernels_.convert, x);
    const OutPieces to(kernels_.convert, out);
    by_pieces(x.count(), [&](size_t at, size_t count, float* buffer) {
      const float* const values = from.read(at, count, buffer);
      float* const kept = to.place(at, buffer);
      gxp::drop_out(kept, values, count,
                    {dropout.rate, {dropout.bits.key, dropout.bits.first + at}});
      to.finish(at, count, kept);
    });
  }

  void adamw_packed(std::span<const PackedAdamW> calls) override {
    for (const PackedAdamW& call : calls) {
      const InPieces gradients(kernels_.convert, call.gradients);
      const PackedMoment first(kernels_.convert, call.first, call.first_scales, call.first_bits);
      const PackedMoment second(kernels_.convert, call.second, call.second_scales,
                                call.second_bits);
      float* const weights = vector_of(call.weights, call.count());
      pool_.parallel_for(call.count(), kPieceElements, [&](size_t begin, size_t end) {
        alignas(64) PieceBuffers buffers;
        for (size_t at = begin; at < end; at += kPieceElements) {
          const size_t count = std::min(kPieceElements, end - at);
          const auto* const gradient = gradients.read(at, count, buffers[3]);
          const std::array<float*, 4> arrays = {weights + at, buffers[1], buffers[2],
                                                const_cast<float*>(gradient)};
          first.unpack(kFirstMap, at, count, buffers[1]);
          second.unpack(kSecondMap, at, count, buffers[2]);
          kernels_.elementwise.apply[ElementwiseMath(call.math).index()](arrays.data(), count,
                                                                         &call.math);
          first.pack(at, count, buffers[1],
                     [](float x, float inverse) { return nearest_code(x * inverse, kFirstMap); });
          second.pack(at, count, buffers[2], [](float x, float inverse) {
            return second_moment_code(x, inverse, kSecondMap);
          });
        }
      });
    }
  }

 private:
  static constexpr DynamicMap kFirstMap = make_dynamic_map(true);
  static constexpr DynamicMap kSecondMap = make_dynamic_map(false);
  static_assert(kPieceElements % kStateBlock == 0);

  // act(at, count, buffer) for pieces of the elements, each with a buffer of its own.
  template <class Act>
  void by_pieces(size_t elements, const Act& act) {
    pool_.parallel_for(elements, kPieceElements, [&](size_t begin, size_t end) {
      alignas(64) float buffer[kPieceElements];
      for (size_t at = begin; at < end; at += kPieceElements)
        act(at, std::min(kPieceElements, end - at), buffer);
    });
  }

  static const void* data_of(const ConstTensor& matrix, size_t rows) {
    GXP_ASSERT(matrix.shape.rows() == rows && matrix.memory.space == MemorySpace::kHost);
    return matrix.memory.data;
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
  RopeTables rope_;
  std::vector<double> block_sums_;
};

}  // namespace

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, const std::string& isa,
                                  const std::string& bf16_products) {
  const Isa chosen = choose_isa(isa);
  return std::make_unique<CpuOps>(pool, chosen, choose_gemm_kernels(chosen, bf16_products));
}

}  // namespace gxp
