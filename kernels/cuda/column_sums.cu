// Sums over the rows of a matrix, in two stages: of blocks of rows, then of the blocks.
#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/typed.cuh"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

constexpr unsigned kLanes = 32;        // columns side by side in a block, N of them each
constexpr unsigned kBlockSums = 1024;  // what a block's threads hold together

// Rows that a block of threads reads side by side.
template <int N>
constexpr unsigned kRowLanes = kBlockSums / (kLanes * N);

template <class T>
struct Columns {
  size_t rows, columns, stride;
  float* out;  // (gridDim.y, columns)
  const T* x;
  bool adds;  // to what `out` holds
};

// Block y sums its share of the rows: thread row r those numbered r, r + kRowLanes, ... of it.
template <int N, class T>
__global__ void column_sums_kernel(Columns<T> matrix) {
  __shared__ float parts[kBlockSums];
  const size_t column = (size_t{blockIdx.x} * kLanes + threadIdx.x) * N;
  const size_t share = (matrix.rows + gridDim.y - 1) / gridDim.y;
  const size_t end =
      share * (blockIdx.y + 1) < matrix.rows ? share * (blockIdx.y + 1) : matrix.rows;
  Floats<N> sum{};
  if (column < matrix.columns) {
    for (size_t row = share * blockIdx.y + threadIdx.y; row < end; row += kRowLanes<N>) {
      const Floats<N> values = load<N>(matrix.x + row * matrix.stride + column);
      for (int j = 0; j < N; ++j) sum.at[j] += values.at[j];
    }
  }
  for (int j = 0; j < N; ++j) parts[(threadIdx.y * kLanes + threadIdx.x) * N + j] = sum.at[j];
  __syncthreads();
  if (threadIdx.y != 0 || column >= matrix.columns) return;
  float* const out = matrix.out + blockIdx.y * matrix.columns + column;
  for (int j = 0; j < N; ++j) {
    float total = 0;
    for (unsigned r = 0; r < kRowLanes<N>; ++r) total += parts[(r * kLanes + threadIdx.x) * N + j];
    out[j] = matrix.adds ? out[j] + total : total;
  }
}

template <int N, class T>
cudaError_t launch(cudaStream_t stream, size_t blocks, const Columns<T>& matrix) {
  const size_t width = size_t{kLanes} * N;
  const dim3 grid(unsigned((matrix.columns + width - 1) / width), unsigned(blocks));
  const auto config = config_of(stream, grid, dim3(kLanes, kRowLanes<N>));
  return cudaLaunchKernelEx(&config, column_sums_kernel<N, T>, matrix);
}

// Eight blocks of threads for each of an H100's multiprocessors, where there are rows enough.
size_t column_sum_blocks(size_t rows, size_t columns) {
  constexpr size_t kRowsPerBlock = 64;
  constexpr size_t kBlocks = 8 * kMultiprocessors;
  const size_t side_by_side = (columns + 4 * kLanes - 1) / (4 * kLanes);
  const size_t most = (kBlocks + side_by_side - 1) / side_by_side;
  return std::clamp(rows / kRowsPerBlock, size_t{1}, most);
}

}  // namespace

void CudaNorms::bias_backward(Tensor dbias, ConstTensor dout) {
  const size_t rows = dout.shape.rows();
  const size_t columns = dout.shape.columns();
  const size_t blocks = column_sum_blocks(rows, columns);
  auto* const partial = queue_.scratch_of<float>(blocks * columns);
  const cudaError_t result = with_element(dout.dtype, [&](auto element) {
    using T = decltype(element);
    const Columns<T> matrix{rows, columns, columns, partial, elements<T>(array_of(dout)), false};
    const bool in_fours = columns % 4 == 0 && lie_in_fours(matrix.x);
    return in_fours ? launch<4>(queue_.stream(), blocks, matrix)
                    : launch<1>(queue_.stream(), blocks, matrix);
  });
  check_cuda(result, "launch bias_backward");
  add_columns(queue_, blocks, columns, columns, cuda_vector<float>(dbias, columns), partial);
}

// One column a thread: there are few rows, and so more blocks share them.
void add_columns(const CudaQueue& queue, size_t rows, size_t columns, size_t stride, float* out,
                 const float* partial) {
  const Columns<float> matrix{rows, columns, stride, out, partial, true};
  check_cuda(launch<1>(queue.stream(), 1, matrix), "launch add_columns");
}

}  // namespace gxp
