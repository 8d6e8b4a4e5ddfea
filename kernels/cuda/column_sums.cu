// Sums over the rows of a matrix, in two stages: of blocks of rows, then of the blocks.
#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/largest.cuh"
#include "kernels/cuda/typed.cuh"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

constexpr unsigned kLanes = 32;        // columns side by side in a block, N of them each
constexpr unsigned kBlockSums = 1024;  // what a block's threads hold together

// Rows that a block of threads reads side by side.
template <int N>
constexpr unsigned kRowLanes = kBlockSums / (kLanes * N);

template <class T, class Rounded = T>
struct Columns {
  size_t rows, columns, stride;
  float* out;  // (gridDim.y, columns)
  const T* x;
  bool adds;                   // to what `out` holds
  Rounded* rounded = nullptr;  // (rows, columns), or null: gets x
  float* largest = nullptr;    // of rounded, or null
};

// Block y sums its share of the rows: thread row r those numbered r, r + kRowLanes, ... of it.
template <int N, class T, class Rounded>
__global__ void column_sums_kernel(Columns<T, Rounded> matrix) {
  alignas(16) __shared__ float parts[kBlockSums];
  const size_t column = (size_t{blockIdx.x} * kLanes + threadIdx.x) * N;
  const size_t share = (matrix.rows + gridDim.y - 1) / gridDim.y;
  const size_t end =
      share * (blockIdx.y + 1) < matrix.rows ? share * (blockIdx.y + 1) : matrix.rows;
  Floats<N> sum{};
  LargestWritten largest;
  if (column < matrix.columns) {
    for (size_t row = share * blockIdx.y + threadIdx.y; row < end; row += kRowLanes<N>) {
      const Floats<N> values = load<N>(matrix.x + row * matrix.stride + column);
      for (int j = 0; j < N; ++j) sum.at[j] += values.at[j];
      if (matrix.rounded != nullptr) store(matrix.rounded + row * matrix.columns + column, values);
      if (matrix.largest != nullptr) largest.see(values);
    }
  }
  largest.raise<Rounded>(matrix.largest);
  store_anywhere(parts + (threadIdx.y * kLanes + threadIdx.x) * N, sum);
  __syncthreads();
  if (threadIdx.y != 0 || column >= matrix.columns) return;
  float* const out = matrix.out + blockIdx.y * matrix.columns + column;
  Floats<N> total{};
  for (unsigned r = 0; r < kRowLanes<N>; ++r) {
    const Floats<N> part = load<N>(parts + (r * kLanes + threadIdx.x) * N);
    for (int j = 0; j < N; ++j) total.at[j] += part.at[j];
  }
  if (matrix.adds) {
    const Floats<N> before = load<N>(out);
    for (int j = 0; j < N; ++j) total.at[j] = before.at[j] + total.at[j];
  }
  store(out, total);
}

template <int N, class T, class Rounded>
cudaError_t launch(cudaStream_t stream, size_t blocks, const Columns<T, Rounded>& matrix) {
  const size_t width = size_t{kLanes} * N;
  const dim3 grid(unsigned((matrix.columns + width - 1) / width), unsigned(blocks));
  const auto config = config_of(stream, grid, dim3(kLanes, kRowLanes<N>));
  return cudaLaunchKernelEx(&config, column_sums_kernel<N, T, Rounded>, matrix);
}

// Eight blocks of threads for each multiprocessor, where there are rows enough.
size_t column_sum_blocks(const GpuSize& gpu, size_t rows, size_t columns) {
  constexpr size_t kRowsPerBlock = 64;
  const size_t all = 8 * gpu.multiprocessors;
  const size_t side_by_side = (columns + 4 * kLanes - 1) / (4 * kLanes);
  const size_t most = (all + side_by_side - 1) / side_by_side;
  return std::clamp(rows / kRowsPerBlock, size_t{1}, most);
}

}  // namespace

void CudaNorms::round_and_sum(const StreamOutputs& out, ConstTensor x) {
  const CudaArray rounded = array_of(out.rounded);
  GXP_ASSERT(rounded.data == nullptr || x.dtype == DType::kF32);
  if (out.column_sums.memory.data == nullptr) {
    if (rounded.data != nullptr) convert(out.rounded, x);
    return;
  }
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  GXP_ASSERT(rounded.data == nullptr || out.rounded.count() == x.count());
  const size_t blocks = column_sum_blocks(queue_.stream().gpu, rows, columns);
  auto* const partial = queue_.scratch_of<float>(blocks * columns);
  const auto sum = [&](auto from, auto to) {
    using T = decltype(from);
    using Rounded = decltype(to);
    const Columns<T, Rounded> matrix{rows,
                                     columns,
                                     columns,
                                     partial,
                                     elements<T>(array_of(x)),
                                     false,
                                     elements<Rounded>(rounded),
                                     out.rounded.largest};
    const bool in_fours = columns % 4 == 0 && lie_in_fours(matrix.x, matrix.rounded);
    return in_fours ? launch<4>(queue_.stream(), blocks, matrix)
                    : launch<1>(queue_.stream(), blocks, matrix);
  };
  const cudaError_t result =
      rounded.data == nullptr
          ? with_element(x.dtype, [&](auto element) { return sum(element, element); })
          : with_element(rounded.type, [&](auto element) { return sum(float{}, element); });
  check_cuda(result, "launch sums of columns");
  add_columns(queue_, blocks, columns, columns, cuda_vector<float>(out.column_sums, columns),
              partial);
}

// One column a thread: there are few rows, and so more blocks share them.
void add_columns(const CudaQueue& queue, size_t rows, size_t columns, size_t stride, float* out,
                 const float* partial) {
  const Columns<float> matrix{rows, columns, stride, out, partial, true};
  check_cuda(launch<1>(queue.stream(), 1, matrix), "launch add_columns");
}

}  // namespace gxp
