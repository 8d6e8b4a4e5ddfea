#include "kernels/cuda/sums_launch.h"

#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/typed.cuh"

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

__global__ void square_columns(size_t rows, size_t columns, double* sums, const float* x) {
  const size_t column = size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= columns) return;
  double sum = 0;
  for (size_t row = 0; row < rows; ++row) sum += term(x[row * columns + column], true);
  sums[column] = sum;
}

}  // namespace

size_t partial_sums_of(size_t count) { return (count + kSumBlock - 1) / kSumBlock; }

cudaError_t launch_add_sum(cudaStream_t stream, size_t count, double* total, double* partial,
                           ConstCudaArray x, bool of_squares) {
  const size_t blocks = partial_sums_of(count);
  if (blocks == 0) return cudaSuccess;
  return with_element(x.type, [&](auto element) {
    using T = decltype(element);
    auto config = config_of(stream, unsigned(blocks), kThreads);
    const cudaError_t result =
        cudaLaunchKernelEx(&config, sum_blocks<T>, count, partial, elements<T>(x), of_squares);
    if (result != cudaSuccess) return result;
    config.gridDim = dim3(1);
    return cudaLaunchKernelEx(&config, add_partial_sums, blocks, total,
                              static_cast<const double*>(partial));
  });
}

cudaError_t launch_row_squares(cudaStream_t stream, size_t rows, size_t columns, double* sums,
                               const float* x) {
  const auto config = config_of(stream, unsigned(rows), kThreads);
  return cudaLaunchKernelEx(&config, square_rows, columns, sums, x);
}

cudaError_t launch_column_squares(cudaStream_t stream, size_t rows, size_t columns, double* sums,
                                  const float* x) {
  const auto config = config_of(stream, unsigned((columns + kThreads - 1) / kThreads), kThreads);
  return cudaLaunchKernelEx(&config, square_columns, rows, columns, sums, x);
}

}  // namespace gxp
