// Plain attention, forward: kernels/cpu/attention.inc by blocks. Dao, arXiv:2307.08691.
#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/attention/attention_plain.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/softmax.h"

namespace gxp::plain_attention {
namespace {

// `fold` over the threads that hold a row together.
template <class Fold>
__device__ float reduce_row(float value, Fold fold) {
  for (int distance = kAcross / 2; distance > 0; distance /= 2)
    value = fold(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

// A tile of queries: see kernels/math/softmax.h. `sum` is of this thread's columns alone.
struct QueryRows {
  Part out;  // not yet divided by the sum
  float maximum[kRows];
  float sum[kRows];
};

// Scores of a tile of keys become e^(score - maximum); what was added before is rescaled.
template <ScoreForm kForm>
__device__ void join_scores(QueryRows& queries, Part& scores, const PlainBlockTile& block,
                            const ScoreMath<kForm>& math, int first_key) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float maximum = queries.maximum[i];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const bool hidden = math.hides(block.first() + row(i), first_key + column(j));
      scores.at[i][j] = hidden ? -__builtin_inff() : math.score_of(scores.at[i][j]);
      maximum = fmaxf(maximum, scores.at[i][j]);
    }
    maximum = reduce_row(maximum, Max());
    const float factor = rescale(queries.maximum[i], maximum);
    queries.maximum[i] = maximum;
    queries.sum[i] *= factor;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      queries.out.at[i][j] *= factor;
      scores.at[i][j] = exp_of_nonpositive(scores.at[i][j] - maximum);
      queries.sum[i] += scores.at[i][j];
    }
  }
}

template <ScoreForm kForm, int N, class T>
__global__ void __launch_bounds__(kThreads, 3) forward_kernel(const AttentionForward args) {
  PlainBlockTile block(args.shape);
  block.tile = block.tiles - 1 - block.tile;  // the longest rows first
  const auto& in = args.in;
  const unsigned group = block.head / members_of(args.shape);
  const auto q = slice_of_pair<const T>(in.queries, in.of_queries, args.shape, block.head);
  const auto k = slice_of_group<const T>(in.keys, in.of_kv, args.shape, group);
  const auto v = slice_of_group<const T>(in.values, in.of_kv, args.shape, group);
  QueryRows queries{};
  for (float& maximum : queries.maximum) maximum = -__FLT_MAX__;
  const auto math = score_math_of_pair<kForm>(args, block.head);
  const int first = math.first_key(block.first()) / kTile * kTile;
  for (int key = first; key <= block.first(); key += kTile) {
    Part scores = multiply_heads<N>(q, block.first(), k, key, block);
    join_scores(queries, scores, block, math, key);
    add_product<N>(queries.out, scores, v, key, block);
  }
  for (float& sum : queries.sum) sum = reduce_row(sum, Add());
  write_rows<N>(slice_of_pair<T>(args.out, args.shape, block.head), queries.out, block,
                [&](int i) { return 1.0f / queries.sum[i]; });
  if (block.first_channel != 0 || across() != 0) return;
  float* const lse = args.lse + size_t{block.head} * args.shape.positions;
  for (int i = 0; i < kRows; ++i) {
    const int position = block.first() + row(i);
    if (position < block.positions) lse[position] = queries.maximum[i] + logf(queries.sum[i]);
  }
}

}  // namespace
}  // namespace gxp::plain_attention

namespace gxp {

cudaError_t launch_plain_attention_forward(cudaStream_t stream, const AttentionForward& args) {
  using namespace plain_attention;
  const size_t blocks = blocks_of(args.shape, args.shape.heads);
  if (blocks == 0) return cudaSuccess;  // a launch of no blocks is an error
  const auto config = config_of(stream, {unsigned(blocks)}, kThreads, kSharedBytes);
  const size_t head_size = args.shape.head_size;
  return with_element(args.dtype, [&](auto element) {
    using T = decltype(element);
    const bool in_fours = rows_lie_in_fours<T>(args.in, head_size) &&
                          heads_lie_in_fours<T>(args.out, strides_of_outs(args.shape), head_size);
    return with_form(args, [&](auto form) {
      constexpr ScoreForm kForm = decltype(form)::value;
      const auto kernel = in_fours ? forward_kernel<kForm, 4, T> : forward_kernel<kForm, 1, T>;
      return cudaLaunchKernelEx(&config, kernel, args);
    });
  });
}

}  // namespace gxp
