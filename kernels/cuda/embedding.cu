#include <cmath>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/token_order.cuh"
#include "kernels/cuda/typed.cuh"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

template <class Token, class Position>
struct Tables {
  const Token* tokens;
  const Position* positions;  // or null
  size_t position_count;
};

// A block has a row.
template <int N, class Token, class Position>
__global__ void embedding_kernel(TokenRows rows, float* out, Tables<Token, Position> tables) {
  const uint32_t token = token_key(rows, blockIdx.x);
  const bool lies_outside = token == rows.vocabulary;
  if (lies_outside && threadIdx.x == 0) *rows.outside = 1;
  float* const to = out + blockIdx.x * rows.columns;
  const Token* const by_token = tables.tokens + token * rows.columns;
  const Position* const by_position =
      tables.positions == nullptr
          ? nullptr
          : tables.positions + blockIdx.x % tables.position_count * rows.columns;
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

// The end of the run of rows with the key of order[begin]: steps that double, then halves.
__device__ size_t end_of_run(const TokenRows& rows, const int32_t* order, size_t begin,
                             uint32_t key) {
  const auto belongs = [&](size_t i) {
    return i < rows.rows && token_key(rows, size_t(order[i])) == key;
  };
  size_t step = 1;
  while (belongs(begin + step)) step *= 2;
  size_t last = begin + step / 2;  // belongs; begin + step does not
  for (step /= 2; step > 1;) {
    step /= 2;
    if (belongs(last + step)) last += step;
  }
  return last + 1;
}

// The sum so far and the run's rows, added one by one; the next few are read ahead.
template <int N>
__device__ Floats<N> add_run(Floats<N> sum, const float* dout, size_t columns, const int32_t* order,
                             size_t count) {
  constexpr size_t kAhead = 8 / N;
  for (size_t i = 0; i < count; i += kAhead) {
    Floats<N> terms[kAhead];
    for (size_t k = 0; k < kAhead; ++k) {
      terms[k] = {};
      if (i + k < count) terms[k] = load<N>(dout + size_t(order[i + k]) * columns);
    }
    for (size_t k = 0; k < kAhead; ++k)
      for (int j = 0; j < N; ++j) sum.at[j] += terms[k].at[j];
  }
  return sum;
}

// The block at a run's first row adds the run; the blocks at its other rows have nothing to do.
template <int N>
__global__ void add_token_rows_kernel(TokenRows rows, float* dtable, const float* dout,
                                      const int32_t* order) {
  const size_t begin = blockIdx.x;
  const uint32_t key = token_key(rows, size_t(order[begin]));
  if (begin > 0 && token_key(rows, size_t(order[begin - 1])) == key) return;
  if (key == rows.vocabulary) {
    if (threadIdx.x == 0 && blockIdx.y == 0) *rows.outside = 1;
    return;
  }
  const size_t column = (size_t{blockIdx.y} * blockDim.x + threadIdx.x) * N;
  if (column >= rows.columns) return;
  const size_t count = end_of_run(rows, order, begin, key) - begin;
  float* const to = dtable + key * rows.columns + column;
  store(to, add_run(load<N>(to), dout + column, rows.columns, order + begin, count));
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

// NaN where a token lies outside.
cudaError_t launch_forward(cudaStream_t stream, const TokenRows& rows, float* out,
                           ConstCudaArray token_table, ConstCudaArray position_table,
                           size_t positions) {
  if (rows.rows == 0) return cudaSuccess;
  constexpr size_t kMostThreads = 256;
  return with_element(token_table.type, [&](auto of_token) {
    return with_element(position_table.type, [&](auto of_position) {
      using Token = decltype(of_token);
      using Position = decltype(of_position);
      const Tables<Token, Position> tables{elements<Token>(token_table),
                                           elements<Position>(position_table), positions};
      const bool in_fours =
          rows.columns % 4 == 0 && lie_in_fours(out, tables.tokens, tables.positions);
      const size_t groups = in_fours ? rows.columns / 4 : rows.columns;
      const auto config =
          config_of(stream, dim3(unsigned(rows.rows)), dim3(whole_warps(groups, kMostThreads)));
      return in_fours ? cudaLaunchKernelEx(&config, embedding_kernel<4, Token, Position>, rows, out,
                                           tables)
                      : cudaLaunchKernelEx(&config, embedding_kernel<1, Token, Position>, rows, out,
                                           tables);
    });
  });
}

// dtable(vocabulary, columns) += each token's rows of dout(rows, columns), one by one in their
// order.
cudaError_t launch_add_token_rows(cudaStream_t stream, const TokenRows& rows, float* dtable,
                                  const float* dout, const int32_t* order) {
  if (rows.rows == 0) return cudaSuccess;
  constexpr size_t kMostThreads = 128;
  const bool in_fours = rows.columns % 4 == 0 && lie_in_fours(dtable, dout);
  const size_t groups = in_fours ? rows.columns / 4 : rows.columns;
  const unsigned threads = whole_warps(groups, kMostThreads);
  const dim3 blocks(unsigned(rows.rows), unsigned((groups + threads - 1) / threads));
  const auto config = config_of(stream, blocks, dim3(threads));
  return in_fours
             ? cudaLaunchKernelEx(&config, add_token_rows_kernel<4>, rows, dtable, dout, order)
             : cudaLaunchKernelEx(&config, add_token_rows_kernel<1>, rows, dtable, dout, order);
}

}  // namespace

void CudaTokens::embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                                   ConstTensor position_table) {
  const size_t rows = out.shape.rows();
  const size_t columns = out.shape.columns();
  const size_t positions = tokens.shape.columns();
  GXP_ASSERT(token_table.shape.columns() == columns);
  GXP_ASSERT(position_table.memory.data == nullptr || (position_table.shape.rows() >= positions &&
                                                       position_table.shape.columns() == columns));
  const TokenRows which = {rows, columns, cuda_indices(tokens, rows), token_table.shape.rows(),
                           queue_.outside_flag()};
  check_cuda(launch_forward(queue_.stream(), which, cuda_vector<float>(out, rows * columns),
                            array_of(token_table), array_of(position_table), positions),
             "launch embedding_forward");
}

void CudaTokens::embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                                    ConstTensor tokens) {
  const size_t rows = dout.shape.rows();
  const size_t columns = dout.shape.columns();
  const size_t positions = tokens.shape.columns();
  const float* const from = cuda_vector<float>(dout, rows * columns);
  if (dtoken_table.memory.data != nullptr) {
    const size_t vocabulary = dtoken_table.shape.rows();
    const TokenRows which = {rows, columns, cuda_indices(tokens, rows), vocabulary,
                             queue_.outside_flag()};
    auto* const order = queue_.scratch_of<int32_t>(token_order_elements(rows));
    check_cuda(launch_sort_tokens(queue_.stream(), which, order), "launch embedding_backward");
    check_cuda(
        launch_add_token_rows(queue_.stream(), which,
                              cuda_vector<float>(dtoken_table, vocabulary * columns), from, order),
        "launch embedding_backward");
  }
  if (dposition_table.memory.data != nullptr && rows > 0) {
    const size_t known = dposition_table.shape.rows();
    GXP_ASSERT(known >= positions);
    const size_t elements = positions * columns;
    const AddPositions body{cuda_vector<float>(dposition_table, known * columns), from,
                            rows / positions, elements};
    const bool in_fours = elements % 4 == 0 && lie_in_fours(body.sums, from);
    check_cuda(for_each(queue_.stream(), elements, in_fours, body), "launch embedding_backward");
  }
}

}  // namespace gxp
