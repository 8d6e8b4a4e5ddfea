// Attention of a few queries over cached keys and values. A block makes up to kThreads channels of
// one query's output; a head with more channels takes several blocks, which compute the scores
// again each. For a tile of keys, a warp makes the score of one key after the other; then each
// thread adds up its channel of the values. Online softmax: arXiv:1805.02867.
#include "kernels/cuda/attention/attention_head.cuh"
#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/half.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/softmax.h"

namespace gxp {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpLanes;

// The score of a key, by a warp; every lane gets it.
template <class T>
__device__ float score_of(const T* query, const T* key, int channels,
                          const ScoreMath<ScoreForm::kGeneral>& math) {
  float product = 0;
  for (int i = int(threadIdx.x) % kWarpLanes; i < channels; i += kWarpLanes)
    product = fmaf(to_float(query[i]), to_float(key[i]), product);
  return math.score_of(reduce_warp(product, Add()));
}

template <class T>
__global__ void __launch_bounds__(kThreads) cached_kernel(const AttentionCached args) {
  __shared__ float scores[kThreads];
  const int channels = int(args.shape.head_size);
  const int chunks = (channels + kThreads - 1) / kThreads;
  const int channel = int(blockIdx.x) % chunks * kThreads + int(threadIdx.x);
  const auto t = blockIdx.x / unsigned(chunks) % unsigned(args.shape.positions);
  const unsigned pair = blockIdx.x / unsigned(chunks) / unsigned(args.shape.positions);
  const auto queries =
      slice_of_pair<const T>(args.in.queries, args.in.of_queries, args.shape, pair);
  const T* const query = queries.first + t * queries.stride;
  AttentionShape past = args.shape;
  past.positions = args.rows;
  const unsigned group = pair / members_of(past);
  const auto keys = slice_of_group<const T>(args.in.keys, args.in.of_kv, past, group);
  const auto values = slice_of_group<const T>(args.in.values, args.in.of_kv, past, group);
  const ScoreMath<ScoreForm::kGeneral> math(args.scores, past, nullptr);
  const int position = int(args.first) + int(t);
  const int warp = int(threadIdx.x) / kWarpLanes;
  float maximum = -__FLT_MAX__, sum = 0, out = 0;
  for (int first = math.first_key(position); first <= position; first += kThreads) {
    const int left = position + 1 - first, count = left < kThreads ? left : kThreads;
    for (int i = warp; i < count; i += kWarps) {
      const float score =
          score_of(query, keys.first + size_t(first + i) * keys.stride, channels, math);
      if (threadIdx.x % kWarpLanes == 0) scores[i] = score;
    }
    __syncthreads();
    const bool has_key = int(threadIdx.x) < count;
    const float own = has_key ? scores[threadIdx.x] : -__FLT_MAX__;
    const float now = fmaxf(maximum, reduce_block(own, Max(), own));
    const float e = has_key ? exp_of_nonpositive(own - now) : 0.0f;
    if (has_key) scores[threadIdx.x] = e;
    const float factor = rescale(maximum, now);
    sum = sum * factor + reduce_block(e, Add(), 0.0f);
    out *= factor;
    maximum = now;
    for (int i = 0; channel < channels && i < count; ++i)
      out =
          fmaf(scores[i], to_float(values.first[size_t(first + i) * values.stride + channel]), out);
    __syncthreads();
  }
  if (channel >= channels) return;
  const auto to = slice_of_pair<T>(args.out, args.shape, pair);
  to.first[t * to.stride + channel] = round_to<T>(out / sum);
}

}  // namespace

cudaError_t launch_cached_attention(cudaStream_t stream, const AttentionCached& args) {
  const AttentionShape& shape = args.shape;
  const size_t chunks = (shape.head_size + kThreads - 1) / kThreads;
  const size_t blocks = shape.batch * shape.heads * shape.positions * chunks;
  if (blocks == 0) return cudaSuccess;  // a launch of no blocks is an error
  const auto config = config_of(stream, dim3(unsigned(blocks)), dim3(kThreads));
  return with_element(args.dtype, [&](auto element) {
    return cudaLaunchKernelEx(&config, cached_kernel<decltype(element)>, args);
  });
}

}  // namespace gxp
