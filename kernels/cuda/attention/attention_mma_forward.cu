// Attention on tensor cores, forward: Dao, arXiv:2307.08691. Scores and sums are f32; e^(score -
// maximum) is rounded to the elements' type before it multiplies the values.
#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/attention/attention_mma.cuh"
#include "kernels/cuda/attention/attention_mma_sizes.cuh"
#include "kernels/cuda/launch.cuh"

namespace gxp::mma_attention {
namespace {

constexpr int kKeys = 64;  // of a tile
constexpr int kSums = kKeys / 8;

// Two tiles of keys and two of values: one pair is copied while the other is multiplied with.
template <int D>
constexpr int kSharedBytes = 4 * tile_bytes<D>(kKeys);

// A warp's queries: see kernels/math/softmax.h. Maxima are of log2(e) times the scores; `sum` is of
// this lane's columns alone.
template <int D>
struct QueryRows {
  SumFragment out[D / 8];  // not yet divided by the sum
  float maximum[2];
  float sum[2];
};

// The warp's rows of the queries, straight from memory.
template <class T, int D>
__device__ __forceinline__ void read_queries(LeftFragment (&queries)[D / 16],
                                             const HeadSlice<const T>& head,
                                             const MmaBlockTile& block) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int position = block.first_of_warp() + row_of(2 * (i % 2));
    const bool present = position < block.positions;
    const T* const row = head.first + size_t(present ? position : 0) * head.stride;
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      const T* const at = row + 16 * k + 8 * (i / 2) + column_of(0);
      queries[k].at[i] = present ? *reinterpret_cast<const uint32_t*>(at) : 0;
    }
  }
}

// `fold` over the four lanes that hold a row together.
template <class Fold>
__device__ __forceinline__ float reduce_row(float value, Fold fold) {
  value = fold(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fold(value, __shfl_xor_sync(kAllLanes, value, 2));
}

// Keys that their query does not see get the score -infinity. `first` is the tile's first key less
// the warp's first query.
template <ScoreForm kForm, int D>
__device__ __forceinline__ void hide_keys(SumFragment (&scores)[kSums], int first,
                                          const ScoreMath<kForm, D>& math,
                                          const RowLimits& first_keys) {
#pragma unroll
  for (int n = 0; n < kSums; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first + 8 * n + column_of(i);
      if (math.is_hidden_by_distance(row_of(i), key) ||
          (kForm == ScoreForm::kDocuments && key < first_keys.own[i / 2]))
        scores[n].at[i] = -__builtin_inff();
    }
  }
}

// Scores of a tile of keys become e^(score - maximum); what was added before is rescaled.
template <int D>
__device__ __forceinline__ void join_scores(QueryRows<D>& queries, SumFragment (&scores)[kSums],
                                            float scale) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = scores[0].at[2 * r];
#pragma unroll
    for (int n = 0; n < kSums; ++n)
      largest = fmaxf(largest, fmaxf(scores[n].at[2 * r], scores[n].at[2 * r + 1]));
    const float maximum = fmaxf(queries.maximum[r], reduce_row(largest, Max()) * scale);
    const float factor = fast_exp2(queries.maximum[r] - maximum);
    queries.maximum[r] = maximum;
    float sum = queries.sum[r] * factor;
#pragma unroll
    for (int n = 0; n < kSums; ++n) {
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[n].at[i] = fast_exp2(fmaf(scores[n].at[i], scale, -maximum));
        sum += scores[n].at[i];
      }
    }
    queries.sum[r] = sum;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      queries.out[n].at[2 * r] *= factor;
      queries.out[n].at[2 * r + 1] *= factor;
    }
  }
}

template <class T, int D>
__device__ __forceinline__ void write_results(const AttentionForward& args, QueryRows<D>& queries,
                                              const MmaBlockTile& block) {
  float inverses[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = reduce_row(queries.sum[r], Add());
    inverses[r] = 1.0f / sum;
    const int position = block.first_of_warp() + row_of(2 * r);
    if (lane() % 4 == 0 && position < block.positions) {
      args.lse[size_t{block.head} * args.shape.positions + position] =
          queries.maximum[r] * kLn2 + logf(sum);
    }
  }
  write_rows<T, D>(slice_of_pair<T>(args.out, args.shape, block.head), queries.out, block,
                   inverses);
}

// Registers for three blocks on a multiprocessor, four of small heads: while one waits for its
// exponentials, another multiplies. From sm_100 on, ptxas would spill those of heads of 128, and
// those of the general form from 96 on, some on all GPUs.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int kBlocksOf128 = 2;
#else
constexpr int kBlocksOf128 = 3;
#endif
template <ScoreForm kForm, int D>
constexpr int resident_blocks() {
  if (kForm != ScoreForm::kDefault && D > 64) return 2;
  return D < 128 ? 3 : kBlocksOf128;
}
template <ScoreForm kForm, class T, int D>
__global__ void __launch_bounds__(kThreads, (resident_blocks<kForm, D>()))
    forward_kernel(const AttentionForward args) {
  MmaBlockTile block(args.shape);
  block.tile = block.tiles - 1 - block.tile;  // the longest rows first
  const auto& in = args.in;
  const unsigned group = block.head / members_of(args.shape);
  const auto q = slice_of_pair<const T>(in.queries, in.of_queries, args.shape, block.head);
  const auto k = slice_of_group<const T>(in.keys, in.of_kv, args.shape, group);
  const auto v = slice_of_group<const T>(in.values, in.of_kv, args.shape, group);
  const SharedAddress tiles = shared_address(dynamic_shared<T>());
  const auto keys_at = [&](int tile) { return tiles + tile % 2 * 2 * tile_bytes<D>(kKeys); };
  const auto start = [&](int tile) {
    start_tile<kKeys, D>(keys_at(tile), k, tile * kKeys, block.positions);
    start_tile<kKeys, D>(keys_at(tile) + tile_bytes<D>(kKeys), v, tile * kKeys, block.positions);
  };
  const auto math = score_math_of_pair<kForm, D>(args, block.head);
  constexpr bool kHasDocuments = kForm == ScoreForm::kDocuments;
  RowLimits first_keys{};
  if (kHasDocuments)
    first_keys = row_limits(block, [&](int query) { return math.first_key(query); });
  const int first_tile = math.first_key(block.first()) / kKeys;
  start(first_tile);
  LeftFragment own[D / 16];
  read_queries<T, D>(own, q, block);
  QueryRows<D> queries{};
  queries.maximum[0] = queries.maximum[1] = -__FLT_MAX__;
  const float scale = log2_scale(math);
  for (int tile = first_tile; tile * kKeys <= block.first(); ++tile) {
    finish_copies();
    __syncthreads();  // and nobody reads the pair of tiles before
    if ((tile + 1) * kKeys <= block.first()) start(tile + 1);
    SumFragment scores[kSums] = {};
    multiply_rows<T, D>(
        scores, [&](int i) { return own[i]; }, keys_at(tile));
    const int first = tile * kKeys - block.first_of_warp();
    cap_products(scores, math);
    if (first + kKeys > 0 || math.is_too_far(kWarpRows - 1, first) ||
        (kHasDocuments && first < first_keys.last))
      hide_keys(scores, first, math, first_keys);
    join_scores(queries, scores, scale);
    multiply_columns<T, D>(queries.out, scores, keys_at(tile) + tile_bytes<D>(kKeys));
  }
  write_results<T, D>(args, queries, block);
}

}  // namespace
}  // namespace gxp::mma_attention

namespace gxp {

bool mma_attention_takes(DType dtype, size_t head_size) {
  const auto visit = [](auto, auto) { return cudaSuccess; };
  return mma_attention::with_sizes(dtype, head_size, visit) == cudaSuccess;
}

cudaError_t launch_mma_attention_forward(cudaStream_t stream, const AttentionForward& args) {
  using namespace mma_attention;
  const unsigned blocks = blocks_of(args.shape, args.shape.heads);
  return with_sizes(args.dtype, args.shape.head_size, [&](auto element, auto head_size) {
    constexpr int kD = decltype(head_size)::value;
    using T = decltype(element);
    return with_form(args, [&](auto form) {
      return launch(stream, forward_kernel<decltype(form)::value, T, kD>, blocks, kSharedBytes<kD>,
                    args);
    });
  });
}

}  // namespace gxp
