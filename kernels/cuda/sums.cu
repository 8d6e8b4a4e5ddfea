#include <algorithm>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/fingerprint.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

constexpr unsigned kThreads = 256;
// Elements of one partial sum, which depend on nothing but the count.
constexpr size_t kSumBlock = 1 << 14;

template <class T>
__device__ double term(T element, bool squared) {
  const double x = to_float(element);
  return squared ? x * x : x;
}
__device__ double term(double element, bool squared) {
  return squared ? element * element : element;
}

// A block's partial sum: thread t adds elements t, t + 256, ...
template <class T>
__global__ void sum_blocks(size_t count, double* partial, const T* x, bool squared) {
  const size_t first = blockIdx.x * kSumBlock;
  const size_t end = first + kSumBlock < count ? first + kSumBlock : count;
  double sum = 0;
  for (size_t i = first + threadIdx.x; i < end; i += kThreads) sum += term(x[i], squared);
  sum = reduce_block(sum, Add(), 0.0);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void add_partial_sums(size_t count, double* total, const double* partial) {
  double sum = 0;
  for (size_t i = threadIdx.x; i < count; i += kThreads) sum += partial[i];
  sum = reduce_block(sum, Add(), 0.0);
  if (threadIdx.x == 0) *total += sum;
}

__global__ void square_rows(size_t columns, double* sums, const float* x) {
  const float* const row = x + blockIdx.x * columns;
  double sum = 0;
  for (size_t i = threadIdx.x; i < columns; i += kThreads) sum += term(row[i], true);
  sum = reduce_block(sum, Add(), 0.0);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

constexpr unsigned kColumnLanes = 32;
constexpr unsigned kRowLanes = kThreads / kColumnLanes;
constexpr size_t kShare = 256;  // rows of one partial sum

// sums(gridDim.y, columns): of blocks of `share` rows, of which thread row r adds those numbered r,
// r + kRowLanes, ...
template <class T>
__global__ void sum_columns(size_t rows, size_t columns, size_t share, double* sums, const T* x,
                            bool squared) {
  __shared__ double parts[kRowLanes][kColumnLanes];
  const size_t column = size_t{blockIdx.x} * kColumnLanes + threadIdx.x;
  const size_t first = blockIdx.y * share;
  const size_t end = first + share < rows ? first + share : rows;
  double sum = 0;
  if (column < columns)
    for (size_t row = first + threadIdx.y; row < end; row += kRowLanes)
      sum += term(x[row * columns + column], squared);
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (unsigned r = 1; r < kRowLanes; ++r) sum += parts[r][threadIdx.x];
  sums[blockIdx.y * columns + column] = sum;
}

// *total += the terms of the words, which are numbered from `first` on.
template <class Bits>
__global__ void add_terms(size_t count, unsigned long long* total, const Bits* x, uint64_t first) {
  const size_t words = word_count<Bits>(count);
  const size_t begin = blockIdx.x * kSumBlock;
  const size_t end = begin + kSumBlock < words ? begin + kSumBlock : words;
  unsigned long long sum = 0;
  for (size_t i = begin + threadIdx.x; i < end; i += kThreads)
    sum += fingerprint_term(word_of(x, count, i), first + i);
  sum = reduce_block(sum, Add(), 0ull);
  if (threadIdx.x == 0) atomicAdd(total, sum);
}

// How many partial sums a sum of `count` elements has.
size_t partial_sums_of(size_t count) { return (count + kSumBlock - 1) / kSumBlock; }

}  // namespace

void CudaSums::add_sum(double* total, double* partial, const ConstTensor& x, bool of_squares) {
  const size_t blocks = partial_sums_of(x.count());
  if (blocks == 0) return;
  const cudaError_t result = with_element(x.dtype, [&](auto element) {
    using T = decltype(element);
    auto config = config_of(queue_.stream(), unsigned(blocks), kThreads);
    const cudaError_t result = cudaLaunchKernelEx(&config, sum_blocks<T>, x.count(), partial,
                                                  elements<T>(array_of(x)), of_squares);
    if (result != cudaSuccess) return result;
    config.gridDim = dim3(1);
    return cudaLaunchKernelEx(&config, add_partial_sums, blocks, total,
                              static_cast<const double*>(partial));
  });
  check_cuda(result, "launch a sum");
}

void CudaSums::add_sum_of_squares(Tensor total, ConstTensor x) {
  auto* const partial = queue_.scratch_of<double>(partial_sums_of(x.count()));
  add_sum(cuda_vector<double>(total, 1), partial, x, true);
}

double CudaSums::sum(const ConstTensor& x, bool of_squares) {
  auto* const total = queue_.scratch_of<double>(1 + partial_sums_of(x.count()));
  check_cuda(cudaMemsetAsync(total, 0, sizeof *total, queue_.stream()), "clear a sum");
  add_sum(total, total + 1, x, of_squares);
  return queue_.read(total);
}

uint64_t CudaSums::fingerprint(std::span<const ConstTensor> parts) {
  auto* const total = queue_.scratch_of<unsigned long long>(1);
  check_cuda(cudaMemsetAsync(total, 0, sizeof *total, queue_.stream()), "clear a fingerprint");
  uint64_t first = 0;
  const auto add = [&](auto bits, const ConstTensor& part) {
    using Bits = decltype(bits);
    const size_t blocks = partial_sums_of(word_count<Bits>(part.count()));
    const auto config = config_of(queue_.stream(), unsigned(blocks), kThreads);
    check_cuda(cudaLaunchKernelEx(&config, add_terms<Bits>, part.count(), total,
                                  reinterpret_cast<const Bits*>(array_of(part).data), first),
               "launch fingerprint");
  };
  for (const ConstTensor& part : parts) {
    if (part.count() == 0) continue;
    const size_t bytes = size_of(part.dtype);
    if (bytes == 1) add(uint8_t{}, part);
    if (bytes == 2) add(uint16_t{}, part);
    if (bytes == 4) add(uint32_t{}, part);
    if (bytes == 8) add(uint64_t{}, part);
    first += (part.memory.bytes + 7) / 8;
  }
  return queue_.read(total);
}

void CudaSums::sums_of_squares(Tensor of_rows, Tensor of_columns, ConstTensor x) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  const float* const from = cuda_vector<float>(x, rows * columns);
  if (double* const sums = cuda_vector_or_null<double>(of_rows, rows); sums != nullptr) {
    const auto config = config_of(queue_.stream(), unsigned(rows), kThreads);
    check_cuda(cudaLaunchKernelEx(&config, square_rows, columns, sums, from),
               "launch sums_of_squares");
  }
  if (double* const sums = cuda_vector_or_null<double>(of_columns, columns); sums != nullptr) {
    const size_t shares = (rows + kShare - 1) / kShare;
    auto* const partial = queue_.scratch_of<double>(shares * columns);
    const auto across = unsigned((columns + kColumnLanes - 1) / kColumnLanes);
    auto config =
        config_of(queue_.stream(), dim3(across, unsigned(shares)), dim3(kColumnLanes, kRowLanes));
    check_cuda(
        cudaLaunchKernelEx(&config, sum_columns<float>, rows, columns, kShare, partial, from, true),
        "launch sums_of_squares");
    config.gridDim.y = 1;
    check_cuda(cudaLaunchKernelEx(&config, sum_columns<double>, shares, columns, shares, sums,
                                  static_cast<const double*>(partial), false),
               "launch sums_of_squares");
  }
}

}  // namespace gxp
