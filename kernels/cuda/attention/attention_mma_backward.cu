// Attention on tensor cores, backward. With scores S, P = e^(S - lse), dP = dO V^T and
// dS = P (dP - delta):
//   dQ = dS K over the tiles of keys up to the diagonal, by blocks that own queries;
//   dV = P^T dO and dK = dS^T Q over the tiles of queries from it on, by blocks that own keys.
// Both compute the scores anew: no sum is shared, so all have a fixed order. A pass that made dQ
// with dK and dV would multiply five times instead of seven, and add to dQ in whatever order
// blocks arrive. P and dS are rounded to the elements' type before they are multiplied with.
#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/attention/attention_mma.cuh"
#include "kernels/cuda/attention/attention_mma_sizes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/math/softmax.h"

namespace gxp::mma_attention {
namespace {

constexpr int kOthers = 32;  // rows of a tile that a block passes over
constexpr int kSums = kOthers / 8;

// Shared memory: the block's own rows of two arrays, queries and dout or keys and values; then
// twice, one for each of two tiles that take turns, those of the others and the queries' sums.
template <int D>
constexpr int kOwnBytes = tile_bytes<D>(kRows);
template <int D>
constexpr int kOthersBytes = 2 * tile_bytes<D>(kOthers) + 2 * kOthers* int(sizeof(float));
template <int D>
constexpr int kSharedBytes = 2 * kOwnBytes<D> + 2 * kOthersBytes<D>;

struct QuerySums {
  float lse, delta;
};
struct Others {
  SharedAddress first;   // keys or queries
  SharedAddress second;  // values or dout
  float* lse;            // of queries
  float* delta;
};
template <int D>
__device__ __forceinline__ Others others_at(int turn) {
  auto* const at = dynamic_shared<unsigned char>() + 2 * kOwnBytes<D> + turn % 2 * kOthersBytes<D>;
  const SharedAddress first = shared_address(at);
  auto* const sums = reinterpret_cast<float*>(at + 2 * tile_bytes<D>(kOthers));
  return {first, first + tile_bytes<D>(kOthers), sums, sums + kOthers};
}

// The two arrays of a side: queries and dout, or keys and values.
template <class T>
struct Side {
  HeadSlice<const T> first, second;
};
template <class T>
__device__ __forceinline__ Side<T> queries_of(const AttentionBackward& args, unsigned pair) {
  return {slice_of_pair<const T>(args.in.queries, args.in.of_queries, args.shape, pair),
          slice_of_pair<const T>(args.dout, args.shape, pair)};
}
template <class T>
__device__ __forceinline__ Side<T> keys_of(const AttentionBackward& args, unsigned group) {
  const auto& in = args.in;
  return {slice_of_group<const T>(in.keys, in.of_kv, args.shape, group),
          slice_of_group<const T>(in.values, in.of_kv, args.shape, group)};
}

template <int kCount, int D, class T>
__device__ __forceinline__ void start_side(SharedAddress first, SharedAddress second,
                                           const Side<T>& side, int row, int positions) {
  start_tile<kCount, D>(first, side.first, row, positions);
  start_tile<kCount, D>(second, side.second, row, positions);
}

// Starts to copy the lse and delta of kOthers queries, with zeros beyond `positions`: there P is 1
// and all that is multiplied with it 0.
__device__ __forceinline__ void start_sums(float* lse, float* delta, const AttentionBackward& args,
                                           unsigned pair, int query) {
  static_assert(2 * kOthers <= kThreads);
  const int i = int(threadIdx.x) % kOthers;
  const bool present = query + i < int(args.shape.positions);
  const size_t at = size_t{pair} * args.shape.positions + size_t(present ? query + i : 0);
  if (threadIdx.x < kOthers) start_copy<4>(shared_address(lse + i), args.lse + at, present);
  if (threadIdx.x >= kOthers && threadIdx.x < 2 * kOthers)
    start_copy<4>(shared_address(delta + i), args.delta + at, present);
}

// The warp's own rows times the others', both arrays.
template <class T, int D>
__device__ __forceinline__ void multiply_sides(SumFragment (&scores)[kSums],
                                               SumFragment (&dscores)[kSums],
                                               const Others& others) {
  const SharedAddress own = shared_address(dynamic_shared<T>()) + warp() * kWarpRows * kRowBytes<D>;
  multiply_rows<T, D>(
      scores, [&](int k) { return left_at<D>(own, 16 * k); }, others.first);
  multiply_rows<T, D>(
      dscores, [&](int k) { return left_at<D>(own + kOwnBytes<D>, 16 * k); }, others.second);
}

// What cap_products() leaves becomes P, its dP becomes dS.
template <ScoreForm kForm, int D>
__device__ __forceinline__ void softmax_backward(float& score, float& dscore,
                                                 const ScoreMath<kForm, D>& math,
                                                 const QuerySums& query, bool hidden) {
  const float exponent = fmaf(score, log2_scale(math), -kLog2E * query.lse);
  const float p = hidden ? 0.0f : fast_exp2(exponent);
  const float ds = math.before_cap(softmax_gradient(p, dscore, query.delta), score);
  score = p;
  dscore = hidden ? 0.0f : ds;
}

template <ScoreForm kForm, class T, int D>
__global__ void __launch_bounds__(kThreads, 3) queries_kernel(const AttentionBackward args) {
  MmaBlockTile block(args.shape);
  block.tile = block.tiles - 1 - block.tile;  // the longest rows first
  const Side<T> keys = keys_of<T>(args, block.head / members_of(args.shape));
  const auto start = [&](int tile) {
    const Others to = others_at<D>(tile);
    start_side<kOthers, D>(to.first, to.second, keys, tile * kOthers, block.positions);
  };
  const SharedAddress own = shared_address(dynamic_shared<T>());
  start_side<kRows, D>(own, own + kOwnBytes<D>, queries_of<T>(args, block.head), block.first(),
                       block.positions);
  const auto math = score_math_of_pair<kForm, D>(args, block.head);
  constexpr bool kHasDocuments = kForm == ScoreForm::kDocuments;
  RowLimits first_keys{};
  if (kHasDocuments)
    first_keys = row_limits(block, [&](int query) { return math.first_key(query); });
  const int first_tile = math.first_key(block.first()) / kOthers;
  start(first_tile);
  QuerySums own_sums[2] = {};
  for (int r = 0; r < 2; ++r) {
    const int query = block.first_of_warp() + row_of(2 * r);
    if (query >= block.positions) continue;
    const size_t at = size_t{block.head} * args.shape.positions + query;
    own_sums[r] = {args.lse[at], args.delta[at]};
  }
  const int end = block.first() + kRows < block.positions ? block.first() + kRows : block.positions;
  SumFragment dq[D / 8] = {};
  for (int tile = first_tile; tile * kOthers < end; ++tile) {
    finish_copies();
    __syncthreads();  // and nobody reads the tile before
    if ((tile + 1) * kOthers < end) start(tile + 1);
    // The tile's first key less the warp's first query.
    const int first = tile * kOthers - block.first_of_warp();
    if (first >= kWarpRows || math.is_too_far(0, first + kOthers - 1) ||
        (kHasDocuments && first + kOthers <= first_keys.first))
      continue;
    const Others others = others_at<D>(tile);
    SumFragment scores[kSums] = {};
    SumFragment dscores[kSums] = {};
    multiply_sides<T, D>(scores, dscores, others);
    cap_products(scores, math);
#pragma unroll
    for (int n = 0; n < kSums; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = first + 8 * n + column_of(i);
        const bool hidden = math.is_hidden_by_distance(row_of(i), key) ||
                            (kHasDocuments && key < first_keys.own[i / 2]);
        softmax_backward(scores[n].at[i], dscores[n].at[i], math, own_sums[i / 2], hidden);
      }
    }
    multiply_columns<T, D>(dq, dscores, others.first);
  }
  const auto& to = args.gradients;
  write_rows<T, D>(slice_of_pair<T>(to.queries, to.of_queries, args.shape, block.head), dq, block,
                   {math.scale(), math.scale()});
}

template <ScoreForm kForm, class T, int D>
__global__ void __launch_bounds__(kThreads, D > 64 ? 2 : 3)
    keys_kernel(const AttentionBackward args) {
  const MmaBlockTile block(args.shape);
  const int members = int(members_of(args.shape));
  const int first_tile = block.first() / kOthers;
  const auto math = score_math_of_group<kForm, D>(args, block.head);
  constexpr bool kHasDocuments = kForm == ScoreForm::kDocuments;
  RowLimits ends{};
  if (kHasDocuments) ends = row_limits(block, [&](int key) { return math.end_of_queries(key); });
  const int last_key = block.first() + kRows - 1;
  const int end = math.end_of_queries(last_key);
  const int tiles = (end + kOthers - 1) / kOthers - first_tile;
  // All tiles of the first member's queries, then the next one's.
  const auto start = [&](int turn) {
    const Others to = others_at<D>(turn);
    const unsigned pair = block.head * unsigned(members) + unsigned(turn / tiles);
    const int query = (first_tile + turn % tiles) * kOthers;
    start_side<kOthers, D>(to.first, to.second, queries_of<T>(args, pair), query, block.positions);
    start_sums(to.lse, to.delta, args, pair, query);
  };
  const SharedAddress own = shared_address(dynamic_shared<T>());
  start_side<kRows, D>(own, own + kOwnBytes<D>, keys_of<T>(args, block.head), block.first(),
                       block.positions);
  start(0);
  SumFragment dk[D / 8] = {};
  SumFragment dv[D / 8] = {};
  for (int turn = 0; turn < members * tiles; ++turn) {
    finish_copies();
    __syncthreads();  // and nobody reads the tile before
    if (turn + 1 < members * tiles) start(turn + 1);
    // The tile's first query less the warp's first key.
    const int first = (first_tile + turn % tiles) * kOthers - block.first_of_warp();
    if (first + kOthers <= 0 || (kHasDocuments && first >= ends.last)) continue;
    const Others others = others_at<D>(turn);
    SumFragment scores[kSums] = {};
    SumFragment dscores[kSums] = {};
    multiply_sides<T, D>(scores, dscores, others);
    cap_products(scores, math);
#pragma unroll
    for (int n = 0; n < kSums; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int query = 8 * n + column_of(i);
        const bool hidden = math.is_hidden_by_distance(first + query, row_of(i)) ||
                            (kHasDocuments && first + query >= ends.own[i / 2]);
        softmax_backward(scores[n].at[i], dscores[n].at[i], math,
                         {others.lse[query], others.delta[query]}, hidden);
      }
    }
    multiply_columns<T, D>(dv, scores, others.second);
    multiply_columns<T, D>(dk, dscores, others.first);
  }
  const auto& to = args.gradients;
  write_rows<T, D>(slice_of_group<T>(to.keys, to.of_kv, args.shape, block.head), dk, block,
                   {math.scale(), math.scale()});
  write_rows<T, D>(slice_of_group<T>(to.values, to.of_kv, args.shape, block.head), dv, block,
                   {1.0f, 1.0f});
}

}  // namespace
}  // namespace gxp::mma_attention

namespace gxp {

cudaError_t launch_mma_attention_backward(cudaStream_t stream, const AttentionBackward& args) {
  using namespace mma_attention;
  const AttentionShape& shape = args.shape;
  return with_sizes(args.dtype, shape.head_size, [&](auto element, auto head_size) {
    using T = decltype(element);
    constexpr int kD = decltype(head_size)::value;
    return with_form(args, [&](auto form) {
      constexpr ScoreForm kForm = decltype(form)::value;
      const cudaError_t error = launch(stream, queries_kernel<kForm, T, kD>,
                                       blocks_of(shape, shape.heads), kSharedBytes<kD>, args);
      if (error != cudaSuccess) return error;
      return launch(stream, keys_kernel<kForm, T, kD>, blocks_of(shape, shape.kv_heads),
                    kSharedBytes<kD>, args);
    });
  });
}

}  // namespace gxp
