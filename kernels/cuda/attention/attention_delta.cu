#include "kernels/cuda/attention/attention_head.cuh"
#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/typed.cuh"

namespace gxp {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarpLanes;

// A warp makes one sum at a time, of N channels a lane.
template <int N, class T>
__global__ void delta_kernel(const AttentionBackward args) {
  const AttentionShape& shape = args.shape;
  const unsigned lane = threadIdx.x % kWarpLanes;
  const size_t count = shape.batch * shape.heads * shape.positions;
  const size_t first = size_t{blockIdx.x} * kWarps + threadIdx.x / kWarpLanes;
  for (size_t i = first; i < count; i += size_t{gridDim.x} * kWarps) {
    const auto pair = unsigned(i / shape.positions);
    const auto out = slice_of_pair<const T>(args.out, shape, pair);
    const auto dout = slice_of_pair<const T>(args.dout, shape, pair);
    const size_t at = i % shape.positions * out.stride;
    float sum = 0;
    for (size_t d = N * lane; d < shape.head_size; d += N * kWarpLanes) {
      const Floats<N> a = load<N>(dout.first + at + d);
      const Floats<N> b = load<N>(out.first + at + d);
      for (int e = 0; e < N; ++e) sum = fmaf(a.at[e], b.at[e], sum);
    }
    sum = reduce_warp(sum, Add());
    if (lane == 0) args.delta[i] = sum;
  }
}

}  // namespace

cudaError_t launch_attention_delta(const GpuStream& stream, const AttentionBackward& args) {
  const size_t sums = args.shape.batch * args.shape.heads * args.shape.positions;
  const auto config =
      config_of(stream, blocks_for(stream.gpu, sums * kWarpLanes, kThreads), kThreads);
  return with_element(args.dtype, [&](auto element) {
    using T = decltype(element);
    const HeadStrides outs = strides_of_outs(args.shape);
    const size_t size = args.shape.head_size;
    return heads_lie_in_fours<T>(args.dout, outs, size) &&
                   heads_lie_in_fours<T>(args.out, outs, size)
               ? cudaLaunchKernelEx(&config, delta_kernel<4, T>, args)
               : cudaLaunchKernelEx(&config, delta_kernel<1, T>, args);
  });
}

}  // namespace gxp
