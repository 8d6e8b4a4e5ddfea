#include <cmath>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/token_order.cuh"
#include "kernels/cuda/typed.cuh"
#include "lib/base/bytes.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

template <class Token, class Position>
struct Tables {
  const Token* tokens;
  const Position* positions;  // or null
  size_t position_count;      // of a row of the batch
  const int32_t* begins;      // of the rows' documents, or null
};

// A block has a row.
template <int N, class Token, class Position>
__global__ void embedding_kernel(TokenRows rows, float* out, Tables<Token, Position> tables) {
  const uint32_t token = token_key(rows, blockIdx.x);
  const bool lies_outside = token == rows.vocabulary;
  if (lies_outside && threadIdx.x == 0) *rows.outside = 1;
  float* const to = out + blockIdx.x * rows.columns;
  const Token* const by_token = tables.tokens + token * rows.columns;
  size_t position = blockIdx.x % tables.position_count;
  if (tables.begins != nullptr) position -= size_t(tables.begins[blockIdx.x]);
  const Position* const by_position =
      tables.positions == nullptr ? nullptr : tables.positions + position * rows.columns;
  for (size_t i = size_t{threadIdx.x} * N; i < rows.columns; i += size_t{blockDim.x} * N) {
    Floats<N> sum;
    for (int j = 0; j < N; ++j) sum.at[j] = nanf("");
    if (!lies_outside) sum = load<N>(by_token + i);
    if (by_position != nullptr) {
      const Floats<N> other = load<N>(by_position + i);
      for (int j = 0; j < N; ++j) sum.at[j] += other.at[j];
    }
    store(to + i, sum);
  }
}

// How many of `count` numbers from 0 on belong: 0 does, and none after one that does not. Steps that
// double, then halves.
template <class Belongs>
__device__ size_t count_leading(size_t count, const Belongs& belongs) {
  size_t known = 0;  // belongs
  size_t end = 1;
  while (end < count && belongs(end)) {
    known = end;
    end *= 2;
  }
  if (end > count) end = count;
  while (end - known > 1) {
    const size_t middle = known + (end - known) / 2;
    (belongs(middle) ? known : end) = middle;
  }
  return end;
}

// Rows in the order of their tokens. Those of one token are a run, which is cut into pieces of
// kPiece rows from its first row on, so that many blocks add a frequent token's. A run's first piece
// is added to the table. Each later one has a sum of its own, whose slot is the piece's first place
// in the order / kPiece: two of one slot would lie in two runs, but the second run has a first piece.
struct SortedRows {
  static constexpr size_t kPiece = 256;

  TokenRows rows;
  const int32_t* order;
  uint32_t padding;  // the token whose rows are left out

  __device__ bool is_left_out(uint32_t key) const {
    return key == rows.vocabulary || key == padding;
  }
  // Slots 1, 2, ...
  __host__ __device__ size_t slots() const { return (rows.rows - 1) / kPiece; }
  __device__ uint32_t key(size_t i) const { return token_key(rows, size_t(order[i])); }
  // The rows of a run from its row i on, at most `most`.
  __device__ size_t count_from(size_t i, size_t most) const {
    const uint32_t own = key(i);
    const size_t rest = rows.rows - i;
    return count_leading(most < rest ? most : rest, [&](size_t k) { return key(i + k) == own; });
  }
  struct LaterPiece {
    size_t begin, count;  // no rows: there is none in the slot
    bool is_second;
  };
  __device__ LaterPiece piece_in(size_t slot) const {
    const size_t place = slot * kPiece;
    const uint32_t own = key(place);
    if (is_left_out(own) || key(place - 1) != own) return {};
    const auto belongs = [&](size_t back) { return key(place - back) == own; };
    const size_t run = place + 1 - count_leading(place + 1, belongs);
    const size_t begin = run + (place - run + kPiece - 1) / kPiece * kPiece;
    if (begin >= rows.rows || key(begin) != own) return {};
    return {begin, count_from(begin, kPiece), begin == run + kPiece};
  }
};

// The sum so far and `count` rows, at least one, added one by one. The next few are read ahead,
// beyond the last one the last again: loads under a condition would wait for each other.
template <int N>
__device__ Floats<N> add_rows(Floats<N> sum, const float* dout, size_t columns,
                              const int32_t* order, size_t count) {
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < count; i += kAhead) {
    int32_t rows[kAhead];
#pragma unroll
    for (size_t k = 0; k < kAhead; ++k) rows[k] = order[i + k < count ? i + k : count - 1];
    Floats<N> terms[kAhead];
#pragma unroll
    for (size_t k = 0; k < kAhead; ++k) terms[k] = load<N>(dout + size_t(rows[k]) * columns);
#pragma unroll
    for (size_t k = 0; k < kAhead; ++k)
      for (int j = 0; j < N; ++j) sum.at[j] += i + k < count ? terms[k].at[j] : 0.0f;
  }
  return sum;
}

// Eight blocks of a multiprocessor leave each thread 64 registers. Left to itself, ptxas takes 32,
// and a row is read when the one before has been added.
constexpr unsigned kMostThreads = 128;
constexpr unsigned kBlocks = 8;

template <int N>
__device__ size_t column_of_thread() {
  return (size_t{blockIdx.y} * blockDim.x + threadIdx.x) * N;
}

// First a block for each slot, which makes the sum of the piece there: these take longest. Then one
// for each row: that at a run's first row adds its first piece, the others have nothing to do.
template <int N>
__global__ void __launch_bounds__(kMostThreads, kBlocks)
    add_pieces_kernel(SortedRows sorted, float* dtable, const float* dout, float* sums) {
  const TokenRows& rows = sorted.rows;
  const size_t column = column_of_thread<N>();
  if (column >= rows.columns) return;
  const size_t slots = sorted.slots();
  if (blockIdx.x < slots) {
    const auto piece = sorted.piece_in(blockIdx.x + 1);
    if (piece.count == 0) return;
    store(sums + blockIdx.x * rows.columns + column,
          add_rows<N>({}, dout + column, rows.columns, sorted.order + piece.begin, piece.count));
    return;
  }
  const size_t begin = blockIdx.x - slots;
  const uint32_t key = sorted.key(begin);
  if (begin > 0 && sorted.key(begin - 1) == key) return;
  if (sorted.is_left_out(key)) {
    if (key == rows.vocabulary && threadIdx.x == 0 && blockIdx.y == 0) *rows.outside = 1;
    return;
  }
  float* const to = dtable + key * rows.columns + column;
  const size_t count = sorted.count_from(begin, SortedRows::kPiece);
  store(to, add_rows(load<N>(to), dout + column, rows.columns, sorted.order + begin, count));
}

// A block for each slot: that of a run's second piece adds the sums of all of the run's.
template <int N>
__global__ void __launch_bounds__(kMostThreads, kBlocks)
    add_sums_kernel(SortedRows sorted, float* dtable, const float* sums) {
  const size_t columns = sorted.rows.columns;
  const size_t column = column_of_thread<N>();
  if (column >= columns) return;
  const auto piece = sorted.piece_in(blockIdx.x + 1);
  if (piece.count == 0 || !piece.is_second) return;
  const size_t rows = sorted.count_from(piece.begin, sorted.rows.rows);
  const size_t end = blockIdx.x + (rows + SortedRows::kPiece - 1) / SortedRows::kPiece;
  float* const to = dtable + sorted.key(piece.begin) * columns + column;
  Floats<N> total = load<N>(to);
#pragma unroll 8
  for (size_t slot = blockIdx.x; slot < end; ++slot) {
    const Floats<N> sum = load<N>(sums + slot * columns + column);
    for (int j = 0; j < N; ++j) total.at[j] += sum.at[j];
  }
  store(to, total);
}

struct AddPositions {
  float* sums;
  const float* terms;
  size_t batch, elements;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> sum = load<N>(sums + i);
    for (size_t b = 0; b < batch; ++b) {
      const Floats<N> next = load<N>(terms + b * elements + i);
      for (int j = 0; j < N; ++j) sum.at[j] += next.at[j];
    }
    store(sums + i, sum);
  }
};

// The positions of rows in their documents.
struct NumberPositions {
  int32_t* numbers;
  const int32_t* begins;
  size_t positions;
  template <int N>
  __device__ void run(size_t i) const {
    for (size_t row = i; row < i + N; ++row) numbers[row] = int32_t(row % positions) - begins[row];
  }
};

struct RowPositions {
  size_t count;           // of a row of the batch
  const int32_t* begins;  // of the rows' documents, or null
};

// NaN where a token lies outside.
cudaError_t launch_forward(cudaStream_t stream, const TokenRows& rows, float* out,
                           ConstCudaArray token_table, ConstCudaArray position_table,
                           const RowPositions& positions) {
  if (rows.rows == 0) return cudaSuccess;
  constexpr size_t kForwardThreads = 256;
  return with_element(token_table.type, [&](auto of_token) {
    return with_element(position_table.type, [&](auto of_position) {
      using Token = decltype(of_token);
      using Position = decltype(of_position);
      const Tables<Token, Position> tables{elements<Token>(token_table),
                                           elements<Position>(position_table), positions.count,
                                           positions.begins};
      const bool in_fours =
          rows.columns % 4 == 0 && lie_in_fours(out, tables.tokens, tables.positions);
      const size_t groups = in_fours ? rows.columns / 4 : rows.columns;
      const auto config =
          config_of(stream, dim3(unsigned(rows.rows)), dim3(whole_warps(groups, kForwardThreads)));
      return in_fours ? cudaLaunchKernelEx(&config, embedding_kernel<4, Token, Position>, rows, out,
                                           tables)
                      : cudaLaunchKernelEx(&config, embedding_kernel<1, Token, Position>, rows, out,
                                           tables);
    });
  });
}

template <int N>
cudaError_t launch_sums(cudaStream_t stream, const SortedRows& sorted, float* dtable,
                        const float* dout, float* sums) {
  const size_t groups = sorted.rows.columns / N;
  const unsigned threads = whole_warps(groups, kMostThreads);
  const auto slots = unsigned(sorted.slots());
  dim3 blocks(slots + unsigned(sorted.rows.rows), unsigned((groups + threads - 1) / threads));
  auto config = config_of(stream, blocks, dim3(threads));
  const cudaError_t result =
      cudaLaunchKernelEx(&config, add_pieces_kernel<N>, sorted, dtable, dout, sums);
  if (result != cudaSuccess || slots == 0) return result;
  config.gridDim.x = slots;
  return cudaLaunchKernelEx(&config, add_sums_kernel<N>, sorted, dtable,
                            static_cast<const float*>(sums));
}

// Of scratch memory: the order of the rows, and behind it, lying in fours, the slots' sums.
size_t order_elements(size_t rows) { return round_up(token_order_elements(rows), 4); }
size_t sum_elements(size_t rows, size_t columns) {
  return order_elements(rows) + rows / SortedRows::kPiece * columns;
}

// dtable(vocabulary, columns) += each token's rows of dout(rows, columns), but those of `padding`.
cudaError_t launch_add_token_rows(cudaStream_t stream, const TokenRows& rows, uint32_t padding,
                                  float* dtable, const float* dout, int32_t* scratch) {
  const cudaError_t result = launch_sort_tokens(stream, rows, scratch);
  if (result != cudaSuccess || rows.rows == 0) return result;
  const SortedRows sorted{rows, scratch, padding};
  auto* const sums = reinterpret_cast<float*>(scratch + order_elements(rows.rows));
  return rows.columns % 4 == 0 && lie_in_fours(dtable, dout)
             ? launch_sums<4>(stream, sorted, dtable, dout, sums)
             : launch_sums<1>(stream, sorted, dtable, dout, sums);
}

}  // namespace

void CudaTokens::embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                                   ConstTensor position_table, ConstTensor document_begin) {
  const size_t rows = out.shape.rows();
  const size_t columns = out.shape.columns();
  const size_t positions = tokens.shape.columns();
  GXP_ASSERT(token_table.shape.columns() == columns);
  GXP_ASSERT(position_table.memory.data == nullptr || (position_table.shape.rows() >= positions &&
                                                       position_table.shape.columns() == columns));
  const TokenRows which = {rows, columns, cuda_indices(tokens, rows), token_table.shape.rows(),
                           queue_.outside_flag()};
  check_cuda(launch_forward(queue_.stream(), which, cuda_vector<float>(out, rows * columns),
                            array_of(token_table), array_of(position_table),
                            {positions, cuda_indices_or_null(document_begin, rows)}),
             "launch embedding_forward");
}

void CudaTokens::embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                                    ConstTensor tokens, int padding, ConstTensor document_begin) {
  const size_t rows = dout.shape.rows(), columns = dout.shape.columns();
  const size_t positions = tokens.shape.columns();
  const float* const from = cuda_vector<float>(dout, rows * columns);
  const int32_t* const begins = cuda_indices_or_null(document_begin, rows);
  const bool has_tokens = dtoken_table.memory.data != nullptr;
  const bool has_positions = dposition_table.memory.data != nullptr && rows > 0;
  const bool numbers_positions = has_positions && begins != nullptr;
  const size_t numbers = numbers_positions ? round_up(rows, 4) : 0;
  int32_t* const scratch = has_tokens || numbers_positions
                               ? queue_.scratch_of<int32_t>(numbers + sum_elements(rows, columns))
                               : nullptr;
  const auto add = [&](const Tensor& table, const int32_t* ids, int left_out) {
    const size_t ids_end = table.shape.rows();
    const TokenRows which = {rows, columns, ids, ids_end, queue_.outside_flag()};
    check_cuda(launch_add_token_rows(queue_.stream(), which, uint32_t(left_out),
                                     cuda_vector<float>(table, ids_end * columns), from,
                                     scratch + numbers),
               "launch embedding_backward");
  };
  if (has_tokens) add(dtoken_table, cuda_indices(tokens, rows), padding);
  if (!has_positions) return;
  GXP_ASSERT(dposition_table.shape.rows() >= positions);
  if (numbers_positions) {
    const NumberPositions body{scratch, begins, positions};
    check_cuda(for_each(queue_.stream(), rows, false, body), "launch embedding_backward");
    return add(dposition_table, scratch, -1);
  }
  const size_t elements = positions * columns;
  const AddPositions body{cuda_vector<float>(dposition_table, dposition_table.count()), from,
                          rows / positions, elements};
  const bool in_fours = elements % 4 == 0 && lie_in_fours(body.sums, from);
  check_cuda(for_each(queue_.stream(), elements, in_fours, body), "launch embedding_backward");
}

}  // namespace gxp
