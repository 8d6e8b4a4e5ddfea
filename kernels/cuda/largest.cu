#include "kernels/cuda/largest.cuh"

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/typed.cuh"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

template <int N, class T>
__global__ void largest_kernel(size_t count, float* place, const T* x) {
  const size_t stride = size_t{gridDim.x} * blockDim.x * N;
  LargestWritten largest;
  for (size_t i = (size_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; i < count; i += stride)
    largest.see(load<N>(x + i));
  largest.raise<T>(place);
}

}  // namespace

void raise_largest(const CudaQueue& queue, float* place, const ConstTensor& x) {
  constexpr unsigned kThreads = 256;
  const GpuStream stream = queue.stream();
  const size_t count = x.count();
  const cudaError_t result = with_element(x.dtype, [&](auto element) {
    using T = decltype(element);
    const T* const from = elements<T>(array_of(x));
    const bool in_fours = count % 4 == 0 && lie_in_fours(from);
    const auto config =
        config_of(stream, blocks_for(stream.gpu, in_fours ? count / 4 : count, kThreads), kThreads);
    return in_fours ? cudaLaunchKernelEx(&config, largest_kernel<4, T>, count, place, from)
                    : cudaLaunchKernelEx(&config, largest_kernel<1, T>, count, place, from);
  });
  check_cuda(result, "launch raise_largest");
}

}  // namespace gxp
