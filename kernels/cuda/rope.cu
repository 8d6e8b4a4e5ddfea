#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/rope_launch.h"
#include "kernels/cuda/typed.cuh"

namespace gxp {
namespace {

// A block has a row, a thread N neighbouring pairs of a head.
template <int N, class T>
__global__ void rotate_kernel(CudaRotation rotation, T* x) {
  const size_t pairs = rotation.pairs;
  const size_t position = blockIdx.x % rotation.positions;
  const float* const cosines = rotation.cosines + position * pairs;
  const float* const sines = rotation.sines + position * pairs;
  T* const row = x + blockIdx.x * rotation.heads * 2 * pairs;
  const auto groups_of_head = unsigned(pairs / N);
  const auto groups = unsigned(rotation.heads) * groups_of_head;
  for (unsigned group = threadIdx.x; group < groups; group += blockDim.x) {
    const size_t head = group / groups_of_head;
    const size_t pair = size_t{group % groups_of_head} * N;
    T* const first = row + head * 2 * pairs + pair;
    Floats<N> a = load<N>(first);
    Floats<N> b = load<N>(first + pairs);
    const Floats<N> cosine = load<N>(cosines + pair);
    const Floats<N> sine = load<N>(sines + pair);
    for (int j = 0; j < N; ++j) {
      const float turned = a.at[j] * cosine.at[j] - b.at[j] * (sine.at[j] * rotation.direction);
      b.at[j] = b.at[j] * cosine.at[j] + a.at[j] * (sine.at[j] * rotation.direction);
      a.at[j] = turned;
    }
    store(first, a);
    store(first + pairs, b);
  }
}

}  // namespace

cudaError_t launch_rotate(cudaStream_t stream, const CudaRotation& rotation) {
  if (rotation.rows == 0) return cudaSuccess;
  constexpr size_t kMostThreads = 256;
  return with_element(rotation.x.type, [&](auto element) {
    using T = decltype(element);
    T* const x = elements<T>(rotation.x);
    const bool in_fours = rotation.pairs % 4 == 0 && lie_in_fours(x);
    const size_t groups = rotation.heads * rotation.pairs / (in_fours ? 4 : 1);
    const auto config =
        config_of(stream, dim3(unsigned(rotation.rows)), dim3(whole_warps(groups, kMostThreads)));
    return in_fours ? cudaLaunchKernelEx(&config, rotate_kernel<4, T>, rotation, x)
                    : cudaLaunchKernelEx(&config, rotate_kernel<1, T>, rotation, x);
  });
}

}  // namespace gxp
