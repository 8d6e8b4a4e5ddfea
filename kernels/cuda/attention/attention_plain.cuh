// Products of tiles in shared memory, multiplied in f32: what plain attention's two passes share.
// A block of kThreads makes kTile positions by kTile channels. A head with more channels than that
// takes several blocks, which compute the scores again each, so shared memory and registers do not
// grow with the head.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/attention/attention_head.cuh"
#include "kernels/cuda/half.cuh"
#include "kernels/cuda/shared_memory.cuh"

namespace gxp::plain_attention {

constexpr int kTile = 64;
constexpr int kThreads = 128;
// Rows of a tile lie four floats further apart, so that a quarter of a warp that reads four floats
// of a row each meets all banks.
constexpr int kRowFloats = kTile + 4;
constexpr int kTileFloats = kTile * kRowFloats;
constexpr size_t kSharedBytes = 2 * kTileFloats * sizeof(float);  // two tiles: left and right

// The elements of a (kTile, kTile) product that a thread holds: rows row(i), and columns column(j)
// of products by rows, or 4 * across() + j of products by columns.
constexpr int kRows = 8;
constexpr int kColumns = 4;
constexpr int kAcross = kTile / kColumns;  // threads
struct Part {
  float at[kRows][kColumns];
};
__device__ __forceinline__ int across() { return int(threadIdx.x) % kAcross; }
__device__ __forceinline__ int row(int i) {
  return int(threadIdx.x) / kAcross + kThreads / kAcross * i;
}
__device__ __forceinline__ int column(int j) { return across() + kAcross * j; }

// The tile, the head and the channels that are a block's.
struct PlainBlockTile {
  __device__ PlainBlockTile(const AttentionShape& shape)
      : positions(int(shape.positions)),
        channels(int(shape.head_size)),
        tiles((positions + kTile - 1) / kTile),
        tile(int(blockIdx.x % unsigned(tiles))),
        first_channel(int(blockIdx.x / unsigned(tiles)) % chunks() * kTile),
        head(blockIdx.x / unsigned(tiles) / unsigned(chunks())) {}
  __device__ int chunks() const { return (channels + kTile - 1) / kTile; }
  __device__ int first() const { return tile * kTile; }
  int positions, channels, tiles, tile, first_channel;
  unsigned head;  // a pair or a group
};

inline size_t blocks_of(const AttentionShape& shape, size_t heads) {
  const auto parts = [](size_t count) { return (count + kTile - 1) / kTile; };
  return shape.batch * heads * parts(shape.positions) * parts(shape.head_size);
}

// The tile of `slice` at (first row, first channel), with zeros beyond its end.
template <int N, class T>
__device__ void load_tile(float* tile, const HeadSlice<const T>& slice, const PlainBlockTile& block,
                          int first_row, int first_channel) {
#pragma unroll 2
  for (int i = int(threadIdx.x); i < kTile * kTile / N; i += kThreads) {
    const int r = i / (kTile / N);
    const int c = i % (kTile / N) * N;
    Floats<N> x{};
    if (first_row + r < block.positions && first_channel + c < block.channels)
      x = load<N>(slice.first + size_t(first_row + r) * slice.stride + first_channel + c);
    store_anywhere(tile + r * kRowFloats + c, x);
  }
}

// sum(r, c) += over d < depth of left(r, d) * right(c, d).
__device__ __forceinline__ void multiply_rows(Part& sum, const float* left, const float* right,
                                              int depth) {
  for (int d = 0; d < depth; d += 4) {
    Floats<4> b[kColumns];
    for (int j = 0; j < kColumns; ++j) b[j] = load<4>(right + column(j) * kRowFloats + d);
    for (int i = 0; i < kRows; ++i) {
      const Floats<4> a = load<4>(left + row(i) * kRowFloats + d);
      for (int j = 0; j < kColumns; ++j) {
        for (int e = 0; e < 4; ++e) sum.at[i][j] = fmaf(a.at[e], b[j].at[e], sum.at[i][j]);
      }
    }
  }
}

// sum(r, c) += over d < depth of left(r, d) * right(d, c).
__device__ __forceinline__ void multiply_columns(Part& sum, const float* left, const float* right,
                                                 int depth) {
  for (int d = 0; d < depth; d += 4) {
    Floats<4> b[4];
    for (int e = 0; e < 4; ++e) b[e] = load<4>(right + (d + e) * kRowFloats + kColumns * across());
    for (int i = 0; i < kRows; ++i) {
      const Floats<4> a = load<4>(left + row(i) * kRowFloats + d);
      for (int e = 0; e < 4; ++e) {
        for (int j = 0; j < kColumns; ++j) sum.at[i][j] = fmaf(a.at[e], b[e].at[j], sum.at[i][j]);
      }
    }
  }
}

__device__ __forceinline__ int up_to_a_tile(int rest) { return rest < kTile ? rest : kTile; }

// left(row, column) of a product by rows becomes the left operand of one by columns.
__device__ __forceinline__ void put(float* left, const Part& part) {
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) left[row(i) * kRowFloats + column(j)] = part.at[i][j];
  }
}

// All channels of kTile rows of `a` times those of kTile rows of `b`. Ends with a barrier.
template <int N, class T>
__device__ Part multiply_heads(const HeadSlice<const T>& a, int first_a,
                               const HeadSlice<const T>& b, int first_b,
                               const PlainBlockTile& block) {
  float* const left = dynamic_shared<float>();
  float* const right = left + kTileFloats;
  Part sum{};
  for (int channel = 0; channel < block.channels; channel += kTile) {
    load_tile<N>(left, a, block, first_a, channel);
    load_tile<N>(right, b, block, first_b, channel);
    __syncthreads();
    multiply_rows(sum, left, right, up_to_a_tile(block.channels - channel));
    __syncthreads();
  }
  return sum;
}

// sum += left (kTile, kTile) times the block's channels of kTile rows of `b`. Ends with a barrier.
template <int N, class T>
__device__ void add_product(Part& sum, const Part& left_part, const HeadSlice<const T>& b,
                            int first_b, const PlainBlockTile& block) {
  float* const left = dynamic_shared<float>();
  float* const right = left + kTileFloats;
  put(left, left_part);
  load_tile<N>(right, b, block, first_b, block.first_channel);
  __syncthreads();
  multiply_columns(sum, left, right, up_to_a_tile(block.positions - first_b));
  __syncthreads();
}

// The block's rows of the result.
template <int N, class T, class Factor>
__device__ void write_rows(const HeadSlice<T>& to, const Part& part, const PlainBlockTile& block,
                           const Factor& factor_of_row) {
  for (int i = 0; i < kRows; ++i) {
    const int position = block.first() + row(i);
    if (position >= block.positions) continue;
    const float factor = factor_of_row(i);
    for (int j = 0; j < kColumns; j += N) {
      const int channel = block.first_channel + kColumns * across() + j;
      if (channel >= block.channels) continue;
      Floats<N> values;
      for (int e = 0; e < N; ++e) values.at[e] = part.at[i][j + e] * factor;
      store(to.first + size_t(position) * to.stride + channel, values);
    }
  }
}

// Whether four channels at a time may be read, or written, of queries, keys and values.
template <class T, class Void>
bool rows_lie_in_fours(const AttentionRows<Void>& rows, size_t head_size) {
  return heads_lie_in_fours<T>(rows.queries, rows.of_queries, head_size) &&
         heads_lie_in_fours<T>(rows.keys, rows.of_kv, head_size) &&
         heads_lie_in_fours<T>(rows.values, rows.of_kv, head_size);
}

}  // namespace gxp::plain_attention
