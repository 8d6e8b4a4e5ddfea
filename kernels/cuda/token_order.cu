// Rows sorted by token: a radix sort from the lowest digit up, each pass of which keeps the order
// of rows with equal digits (Knuth, The Art of Computer Programming 3, 5.2.5). A pass counts each
// tile's digits, makes the counts places by summing them up, digit by digit and tile by tile, and
// moves the rows there. Nothing depends on which block runs first.
#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/token_order.cuh"

namespace gxp {
namespace {

constexpr int kDigitBits = 6;
constexpr unsigned kDigits = 1u << kDigitBits;
constexpr size_t kTile = 256;  // rows of a warp
constexpr unsigned kScanThreads = 1024;

size_t tiles_of(size_t count) { return (count + kTile - 1) / kTile; }

struct Pass {
  TokenRows rows;
  int shift;
  const int32_t* from;  // the order so far; null: as they are numbered
  int32_t* to;
  uint32_t* places;  // (kDigits, tiles)
};

// The warp's lanes that have this lane's digit, among those that have one.
__device__ unsigned lanes_with(uint32_t digit, bool has_one) {
  unsigned lanes = __ballot_sync(kAllLanes, has_one);
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const bool is_set = (digit >> bit & 1u) != 0;
    const unsigned set = __ballot_sync(kAllLanes, is_set);
    lanes &= is_set ? set : ~set;
  }
  return lanes;
}

// Gives each row of the block's tile, in order, the next of its digit's numbers in `next`.
template <class Use>
__device__ void number_tile(const Pass& pass, uint32_t* next, const Use& use) {
  const unsigned lane = threadIdx.x;
  for (size_t first = blockIdx.x * kTile; first < (blockIdx.x + 1) * kTile; first += kWarpLanes) {
    const size_t i = first + lane;
    const bool has_row = i < pass.rows.rows;
    const int32_t row = !has_row ? 0 : pass.from == nullptr ? int32_t(i) : pass.from[i];
    const uint32_t digit = token_key(pass.rows, size_t(row)) >> pass.shift & (kDigits - 1);
    const unsigned same = lanes_with(digit, has_row);
    const unsigned before = same & ((1u << lane) - 1);
    const uint32_t number = next[digit] + unsigned(__popc(before));
    __syncwarp();
    if (has_row && before == 0) next[digit] += unsigned(__popc(same));
    __syncwarp();
    if (has_row) use(row, number);
  }
}

__global__ void count_digits(Pass pass) {
  __shared__ uint32_t counts[kDigits];
  for (unsigned d = threadIdx.x; d < kDigits; d += kWarpLanes) counts[d] = 0;
  __syncwarp();
  number_tile(pass, counts, [](int32_t, uint32_t) {});
  for (unsigned d = threadIdx.x; d < kDigits; d += kWarpLanes)
    pass.places[d * gridDim.x + blockIdx.x] = counts[d];
}

__global__ void move_rows(Pass pass) {
  __shared__ uint32_t next[kDigits];
  for (unsigned d = threadIdx.x; d < kDigits; d += kWarpLanes)
    next[d] = pass.places[d * gridDim.x + blockIdx.x];
  __syncwarp();
  number_tile(pass, next, [&](int32_t row, uint32_t place) { pass.to[place] = row; });
}

// The sum over the block's threads before this one.
__device__ uint32_t sum_before(uint32_t value) {
  __shared__ uint32_t of_warps[kWarpLanes];
  const unsigned lane = threadIdx.x % kWarpLanes;
  const unsigned warp = threadIdx.x / kWarpLanes;
  const auto sum_up_to = [lane](uint32_t sum) {
    for (unsigned distance = 1; distance < kWarpLanes; distance *= 2) {
      const uint32_t lower = __shfl_up_sync(kAllLanes, sum, distance);
      if (lane >= distance) sum += lower;
    }
    return sum;
  };
  const uint32_t in_warp = sum_up_to(value);
  if (lane == kWarpLanes - 1) of_warps[warp] = in_warp;
  __syncthreads();
  const uint32_t warps = sum_up_to(of_warps[lane]);
  const uint32_t before = __shfl_sync(kAllLanes, warps, int(warp)) - of_warps[warp];
  return before + in_warp - value;
}

// Each count becomes the sum of those before it. One block; a thread has neighbouring counts.
__global__ void sum_up_counts(uint32_t* counts, size_t count) {
  const size_t share = (count + kScanThreads - 1) / kScanThreads;
  const size_t first = std::min(count, threadIdx.x * share);
  const size_t end = std::min(count, first + share);
  uint32_t sum = 0;
  for (size_t i = first; i < end; ++i) sum += counts[i];
  uint32_t before = sum_before(sum);
  for (size_t i = first; i < end; ++i) before += std::exchange(counts[i], before);
}

cudaError_t launch_pass(cudaStream_t stream, const Pass& pass) {
  const size_t tiles = tiles_of(pass.rows.rows);
  const auto tile_each = config_of(stream, dim3(unsigned(tiles)), dim3(unsigned(kWarpLanes)));
  const auto one_block = config_of(stream, dim3(1), dim3(kScanThreads));
  cudaError_t result = cudaLaunchKernelEx(&tile_each, count_digits, pass);
  if (result == cudaSuccess)
    result = cudaLaunchKernelEx(&one_block, sum_up_counts, pass.places, tiles * kDigits);
  return result == cudaSuccess ? cudaLaunchKernelEx(&tile_each, move_rows, pass) : result;
}

}  // namespace

size_t token_order_elements(size_t count) { return 2 * count + tiles_of(count) * kDigits; }

cudaError_t launch_sort_tokens(cudaStream_t stream, const TokenRows& rows, int32_t* scratch) {
  if (rows.rows == 0) return cudaSuccess;
  const int passes = (int(std::bit_width(rows.vocabulary)) + kDigitBits - 1) / kDigitBits;
  int32_t* const orders[2] = {scratch, scratch + rows.rows};  // the last pass writes the first
  auto* const places = reinterpret_cast<uint32_t*>(scratch + 2 * rows.rows);
  for (int p = 0; p < passes; ++p) {
    const int side = (passes - 1 - p) % 2;
    const int32_t* const from = p == 0 ? nullptr : orders[1 - side];
    const Pass pass = {rows, p * kDigitBits, from, orders[side], places};
    const cudaError_t result = launch_pass(stream, pass);
    if (result != cudaSuccess) return result;
  }
  return cudaSuccess;
}

}  // namespace gxp
