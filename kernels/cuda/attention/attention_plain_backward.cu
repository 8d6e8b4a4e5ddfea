// Plain attention, backward. With scores S, P = e^(S - lse), dP = dO V^T and dS = P (dP - delta):
//   dQ = dS K over the tiles of keys up to the diagonal, by blocks that own queries;
//   dV = P^T dO and dK = dS^T Q over the tiles of queries from it on, by blocks that own keys.
// Both compute the scores anew: no sum is shared, so all have a fixed order.
#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/attention/attention_plain.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/exp.h"
#include "kernels/math/softmax.h"

namespace gxp::plain_attention {
namespace {

// A pair's numbers that tiles of scores need.
struct Sums {
  __device__ Sums(const AttentionBackward& args, unsigned pair)
      : lse(args.lse + size_t{pair} * args.shape.positions),
        delta(args.delta + size_t{pair} * args.shape.positions),
        positions(int(args.shape.positions)) {}
  const float* lse;
  const float* delta;
  int positions;
};

// The first query and the first key of a tile of scores.
struct TileStart {
  int query, key;
};

// Products and dP become P and dS. Rows are queries, or keys.
template <bool kRowsAreKeys, ScoreForm kForm>
__device__ void softmax_backward(Part& scores, Part& dscores, const Sums& sums,
                                 const ScoreMath<kForm>& math, const TileStart& tile) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int query = tile.query + (kRowsAreKeys ? column(j) : row(i));
      const int key = tile.key + (kRowsAreKeys ? row(i) : column(j));
      const bool visible = !math.hides(query, key) && query < sums.positions;
      const float lse = visible ? sums.lse[query] : 0.0f;
      const float delta = visible ? sums.delta[query] : 0.0f;
      const float score = math.score_of(scores.at[i][j]);
      const float p = visible ? exp_of_nonpositive(score - lse) : 0.0f;
      const float ds = math.before_cap(softmax_gradient(p, dscores.at[i][j], delta), score);
      scores.at[i][j] = p;
      dscores.at[i][j] = visible ? ds : 0.0f;
    }
  }
}

template <ScoreForm kForm, int N, class T>
__global__ void __launch_bounds__(kThreads, 2) queries_kernel(const AttentionBackward args) {
  PlainBlockTile block(args.shape);
  block.tile = block.tiles - 1 - block.tile;  // the longest rows first
  const auto& in = args.in;
  const unsigned group = block.head / members_of(args.shape);
  const auto q = slice_of_pair<const T>(in.queries, in.of_queries, args.shape, block.head);
  const auto dout = slice_of_pair<const T>(args.dout, args.shape, block.head);
  const auto k = slice_of_group<const T>(in.keys, in.of_kv, args.shape, group);
  const auto v = slice_of_group<const T>(in.values, in.of_kv, args.shape, group);
  const Sums sums(args, block.head);
  Part dq{};
  const auto math = score_math_of_pair<kForm>(args, block.head);
  const int first = math.first_key(block.first()) / kTile * kTile;
  for (int key = first; key <= block.first(); key += kTile) {
    Part p = multiply_heads<N>(q, block.first(), k, key, block);
    Part ds = multiply_heads<N>(dout, block.first(), v, key, block);
    softmax_backward<false>(p, ds, sums, math, {block.first(), key});
    add_product<N>(dq, ds, k, key, block);
  }
  const auto& to = args.gradients;
  write_rows<N>(slice_of_pair<T>(to.queries, to.of_queries, args.shape, block.head), dq, block,
                [&](int) { return math.scale(); });
}

template <ScoreForm kForm, int N, class T>
__global__ void __launch_bounds__(kThreads, 2) keys_kernel(const AttentionBackward args) {
  const PlainBlockTile block(args.shape);
  const auto& in = args.in;
  const unsigned members = members_of(args.shape);
  const auto k = slice_of_group<const T>(in.keys, in.of_kv, args.shape, block.head);
  const auto v = slice_of_group<const T>(in.values, in.of_kv, args.shape, block.head);
  const auto math = score_math_of_group<kForm>(args, block.head);
  const int end = math.end_of_queries(block.first() + kTile - 1);
  Part dk{};
  Part dv{};
  for (unsigned pair = block.head * members; pair < (block.head + 1) * members; ++pair) {
    const auto q = slice_of_pair<const T>(in.queries, in.of_queries, args.shape, pair);
    const auto dout = slice_of_pair<const T>(args.dout, args.shape, pair);
    const Sums sums(args, pair);
    for (int query = block.first(); query < end; query += kTile) {
      Part p = multiply_heads<N>(k, block.first(), q, query, block);
      Part ds = multiply_heads<N>(v, block.first(), dout, query, block);
      softmax_backward<true>(p, ds, sums, math, {query, block.first()});
      add_product<N>(dv, p, dout, query, block);
      add_product<N>(dk, ds, q, query, block);
    }
  }
  const auto& to = args.gradients;
  write_rows<N>(slice_of_group<T>(to.keys, to.of_kv, args.shape, block.head), dk, block,
                [&](int) { return math.scale(); });
  write_rows<N>(slice_of_group<T>(to.values, to.of_kv, args.shape, block.head), dv, block,
                [&](int) { return 1.0f; });
}

template <ScoreForm kForm, int N, class T>
cudaError_t launch_kernels(cudaStream_t stream, const AttentionBackward& args) {
  const AttentionShape& shape = args.shape;
  const dim3 of_queries(unsigned(blocks_of(shape, shape.heads)));
  const dim3 of_keys(unsigned(blocks_of(shape, shape.kv_heads)));
  if (of_queries.x == 0) return cudaSuccess;  // a launch of no blocks is an error
  const auto first = config_of(stream, of_queries, kThreads, kSharedBytes);
  const cudaError_t error = cudaLaunchKernelEx(&first, queries_kernel<kForm, N, T>, args);
  if (error != cudaSuccess) return error;
  const auto second = config_of(stream, of_keys, kThreads, kSharedBytes);
  return cudaLaunchKernelEx(&second, keys_kernel<kForm, N, T>, args);
}

}  // namespace
}  // namespace gxp::plain_attention

namespace gxp {

cudaError_t launch_plain_attention_backward(cudaStream_t stream, const AttentionBackward& args) {
  using namespace plain_attention;
  const size_t head_size = args.shape.head_size;
  return with_element(args.dtype, [&](auto element) {
    using T = decltype(element);
    const bool in_fours = rows_lie_in_fours<T>(args.in, head_size) &&
                          rows_lie_in_fours<T>(args.gradients, head_size) &&
                          heads_lie_in_fours<T>(args.dout, strides_of_outs(args.shape), head_size);
    return with_form(args, [&](auto form) {
      constexpr ScoreForm kForm = decltype(form)::value;
      return in_fours ? launch_kernels<kForm, 4, T>(stream, args)
                      : launch_kernels<kForm, 1, T>(stream, args);
    });
  });
}

}  // namespace gxp
