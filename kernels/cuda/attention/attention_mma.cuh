// Products of tiles of heads on tensor cores, and what attention's two passes share: a warp owns 16
// rows (queries or keys), whose sums it keeps in registers, and passes over tiles of the others in
// shared memory. T is Bf16 or Fp16, D the head size, a multiple of 16.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/attention/attention_head.cuh"
#include "kernels/cuda/attention/mma.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/shared_memory.cuh"

namespace gxp::mma_attention {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpLanes;
constexpr int kWarpRows = 16;
constexpr int kRows = kWarps * kWarpRows;  // of a block

constexpr float kLog2E = 1.44269504f;
constexpr float kLn2 = 0.693147181f;

__device__ __forceinline__ int lane() { return int(threadIdx.x) % kWarpLanes; }
__device__ __forceinline__ int warp() { return int(threadIdx.x) / kWarpLanes; }
// Row and column of register i of a SumFragment in its 16 x 8 tile (mma_fragments.cuh).
__device__ __forceinline__ int row_of(int i) { return lane() / 4 + 8 * (i / 2); }
__device__ __forceinline__ int column_of(int i) { return lane() % 4 * 2 + i % 2; }

// Rows of a tile in shared memory lie 16 bytes further apart, so that eight of them, read at one
// column, meet all banks.
template <int D>
constexpr int kRowBytes = 2 * D + 16;
template <int D>
constexpr int tile_bytes(int rows) {
  return rows * kRowBytes<D>;
}

// The tile and the head that are a block's.
struct MmaBlockTile {
  __device__ MmaBlockTile(const AttentionShape& shape)
      : positions(int(shape.positions)),
        tiles((positions + kRows - 1) / kRows),
        tile(int(blockIdx.x % unsigned(tiles))),
        head(blockIdx.x / unsigned(tiles)) {}
  __device__ int first() const { return tile * kRows; }
  __device__ int first_of_warp() const { return first() + warp() * kWarpRows; }
  int positions, tiles, tile;
  unsigned head;  // a pair or a group
};

// Of the two rows that a thread has sums of, row_of(0) and row_of(2), and of the warp's first and last
// row: the first key that the query sees, or the end of the queries that see the key. Positions are
// counted from the warp's first row.
struct RowLimits {
  int own[2];
  int first, last;
};
template <class Limit>
__device__ __forceinline__ RowLimits row_limits(const MmaBlockTile& block, const Limit& limit_of) {
  const int from = block.first_of_warp();
  return {{limit_of(from + row_of(0)) - from, limit_of(from + row_of(2)) - from},
          limit_of(from) - from,
          limit_of(from + kWarpRows - 1) - from};
}

inline unsigned blocks_of(const AttentionShape& shape, size_t heads) {
  return unsigned(shape.batch * heads * ((shape.positions + kRows - 1) / kRows));
}

// Starts to copy kCount rows of a head from row `first` on, with zeros beyond `positions`.
template <int kCount, int D, class T>
__device__ __forceinline__ void start_tile(SharedAddress tile, const HeadSlice<const T>& head,
                                           int first, int positions) {
  constexpr int kGroup = 8;                     // elements that a thread copies at once: 16 bytes
  constexpr int kAcross = D % 64 == 0 ? 8 : 4;  // threads that copy a row
  constexpr int kDown = kThreads / kAcross;
  static_assert(kCount % kDown == 0 && D % (kAcross * kGroup) == 0);
  const int own_row = int(threadIdx.x) / kAcross;
  const int own_column = int(threadIdx.x) % kAcross * kGroup;
  const SharedAddress to = tile + (own_row * kRowBytes<D> + 2 * own_column);
  const T* const from = head.first + size_t(first + own_row) * head.stride + own_column;
#pragma unroll
  for (int row = 0; row < kCount; row += kDown) {
    const bool present = first + own_row + row < positions;
#pragma unroll
    for (int column = 0; column < D; column += kAcross * kGroup) {
      start_copy<16>(to + (row * kRowBytes<D> + 2 * column),
                     from + size_t(row) * head.stride + column, present);
    }
  }
}

// 16 rows and the columns from `column` on.
template <int D>
__device__ __forceinline__ LeftFragment left_at(SharedAddress rows, int column) {
  const SharedAddress own = rows + (lane() % 16 * kRowBytes<D> + lane() / 16 * 16);
  const FourMatrices m = load_matrices(own + 2 * column);
  return {{m.at[0], m.at[1], m.at[2], m.at[3]}};
}

// Two right operands, of 16 columns in all.
struct RightPair {
  RightFragment at[2];
};
// The product's columns are rows of the tile.
template <int D>
__device__ __forceinline__ RightPair right_of_rows(SharedAddress tile, int row, int column) {
  const int own_row = lane() / 16 * 8 + lane() % 8;
  const SharedAddress own = tile + (own_row * kRowBytes<D> + lane() / 8 % 2 * 16);
  const FourMatrices m = load_matrices(own + (row * kRowBytes<D> + 2 * column));
  return {{{{m.at[0], m.at[1]}}, {{m.at[2], m.at[3]}}}};
}
// The product's columns are columns of the tile.
template <int D>
__device__ __forceinline__ RightPair right_of_columns(SharedAddress tile, int row, int column) {
  const SharedAddress own = tile + (lane() % 16 * kRowBytes<D> + lane() / 16 * 16);
  const FourMatrices m = load_transposed_matrices(own + (row * kRowBytes<D> + 2 * column));
  return {{{{m.at[0], m.at[1]}}, {{m.at[2], m.at[3]}}}};
}

// sums(16, 8 * kSums) += left(16, D) right(8 * kSums, D)^T; left(k) is its part from column 16 k
// on.
template <class T, int D, int kSums, class Left>
__device__ __forceinline__ void multiply_rows(SumFragment (&sums)[kSums], const Left& left,
                                              SharedAddress right) {
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    const LeftFragment a = left(k);
#pragma unroll
    for (int n = 0; n < kSums / 2; ++n) {
      const RightPair b = right_of_rows<D>(right, 16 * n, 16 * k);
      mma_16x8x16<T>(sums[2 * n], a, b.at[0]);
      mma_16x8x16<T>(sums[2 * n + 1], a, b.at[1]);
    }
  }
}

// sums(16, D) += left(16, 8 * kDepth), rounded to T, times right(8 * kDepth, D).
template <class T, int D, int kDepth>
__device__ __forceinline__ void multiply_columns(SumFragment (&sums)[D / 8],
                                                 const SumFragment (&left)[kDepth],
                                                 SharedAddress right) {
#pragma unroll
  for (int k = 0; k < kDepth / 2; ++k) {
    const SumFragment& low = left[2 * k];
    const SumFragment& high = left[2 * k + 1];
    const LeftFragment a = {
        {pack_halves<T>(low.at[0], low.at[1]), pack_halves<T>(low.at[2], low.at[3]),
         pack_halves<T>(high.at[0], high.at[1]), pack_halves<T>(high.at[2], high.at[3])}};
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {
      const RightPair b = right_of_columns<D>(right, 16 * k, 16 * n);
      mma_16x8x16<T>(sums[2 * n], a, b.at[0]);
      mma_16x8x16<T>(sums[2 * n + 1], a, b.at[1]);
    }
  }
}

// Under a cap, products become scores.
template <ScoreForm kForm, int D, int kSums>
__device__ __forceinline__ void cap_products(SumFragment (&products)[kSums],
                                             const ScoreMath<kForm, D>& math) {
  if (!math.is_capped()) return;
#pragma unroll
  for (int n = 0; n < kSums; ++n) {
#pragma unroll
    for (float& x : products[n].at) x = math.score_of(x);
  }
}
// The factor that makes binary logarithms of what cap_products() leaves.
template <ScoreForm kForm, int D>
__device__ __forceinline__ float log2_scale(const ScoreMath<kForm, D>& math) {
  return math.is_capped() ? kLog2E : kLog2E * math.scale();
}

// The warp's rows of the result, row_of(2 i) times factors[i].
template <class T, int D>
__device__ __forceinline__ void write_rows(const HeadSlice<T>& to, const SumFragment (&sums)[D / 8],
                                           const MmaBlockTile& block, const float (&factors)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int position = block.first_of_warp() + row_of(2 * i);
    if (position >= block.positions) continue;
    T* const row = to.first + size_t(position) * to.stride + column_of(0);
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const float* const at = &sums[n].at[2 * i];
      *reinterpret_cast<uint32_t*>(row + 8 * n) =
          pack_halves<T>(at[0] * factors[i], at[1] * factors[i]);
    }
  }
}

}  // namespace gxp::mma_attention
