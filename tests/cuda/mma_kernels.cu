#include "tests/cuda/mma_kernels.h"

#include "kernels/cuda/attention/mma.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/shared_memory.cuh"

namespace gxp {
namespace {

// Two neighbours in a column of right(16, 8).
__device__ uint32_t pair_below(const uint16_t* right, int row, int column) {
  return right[8 * row + column] | uint32_t{right[8 * (row + 1) + column]} << 16;
}

template <class T>
__global__ void product_kernel(float* sums, const uint16_t* left, const uint16_t* right) {
  const int lane = int(threadIdx.x);
  LeftFragment a;
  RightFragment b;
  SumFragment c;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + 8 * (i % 2);
    const int column = 2 * (lane % 4) + 8 * (i / 2);
    a.at[i] = left[16 * row + column] | uint32_t{left[16 * row + column + 1]} << 16;
  }
  for (int i = 0; i < 2; ++i) b.at[i] = pair_below(right, 2 * (lane % 4) + 8 * i, lane / 4);
  float* const own = sums + 8 * (lane / 4) + 2 * (lane % 4);
  for (int i = 0; i < 4; ++i) c.at[i] = own[64 * (i / 2) + i % 2];
  mma_16x8x16<T>(c, a, b);
  for (int i = 0; i < 4; ++i) own[64 * (i / 2) + i % 2] = c.at[i];
}

__global__ void matrices_kernel(uint32_t* out, const uint16_t* x, int rows) {
  const int lane = int(threadIdx.x);
  const SharedAddress row = shared_address(dynamic_shared<uint16_t>() + 8 * lane);
  start_copy<16>(row, x + 8 * lane, lane < rows);
  finish_copies();
  __syncthreads();
  const FourMatrices plain = load_matrices(row);
  const FourMatrices transposed = load_transposed_matrices(row);
  for (int i = 0; i < 4; ++i) {
    out[4 * lane + i] = plain.at[i];
    out[128 + 4 * lane + i] = transposed.at[i];
  }
}

}  // namespace

cudaError_t launch_product(cudaStream_t stream, DType dtype, float* sums, const uint16_t* left,
                           const uint16_t* right) {
  const auto config = config_of(stream, 1, 32);
  return dtype == DType::kBF16
             ? cudaLaunchKernelEx(&config, product_kernel<Bf16>, sums, left, right)
             : cudaLaunchKernelEx(&config, product_kernel<Fp16>, sums, left, right);
}

cudaError_t launch_matrices(cudaStream_t stream, uint32_t* out, const uint16_t* x, int rows) {
  const auto config = config_of(stream, 1, 32, 32 * 16);
  return cudaLaunchKernelEx(&config, matrices_kernel, out, x, rows);
}

}  // namespace gxp
