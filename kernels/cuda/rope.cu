#include <algorithm>
#include <vector>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/largest.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/rope.h"
#include "kernels/turned_columns.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

struct Rotation {
  size_t rows, positions;  // row r has position first + r % positions, less begins[r]
  size_t first;
  const int32_t* begins;  // of the rows' documents, or null
  size_t columns;         // of x
  HeadColumns heads;
  size_t pairs;
  const float* cosines;  // (first + positions, pairs)
  const float* sines;    // likewise
  float direction;       // 1 or -1
  float* largest;        // of x, or null
};

// In place on x(rows, columns). A block has a row, a thread N neighbouring pairs of a head.
template <int N, class T>
__global__ void rotate_kernel(Rotation rotation, T* x) {
  const size_t pairs = rotation.pairs;
  size_t position = rotation.first + blockIdx.x % rotation.positions;
  if (rotation.begins != nullptr) position -= size_t(rotation.begins[blockIdx.x]);
  const float* const cosines = rotation.cosines + position * pairs;
  const float* const sines = rotation.sines + position * pairs;
  T* const row = x + blockIdx.x * rotation.columns + rotation.heads.first;
  const auto groups_of_head = unsigned(pairs / N);
  const auto groups = unsigned(rotation.heads.count) * groups_of_head;
  LargestWritten largest;
  for (unsigned group = threadIdx.x; group < groups; group += blockDim.x) {
    const size_t head = group / groups_of_head;
    const size_t pair = size_t{group % groups_of_head} * N;
    T* const first = row + head * rotation.heads.stride + pair;
    Floats<N> a = load<N>(first);
    Floats<N> b = load<N>(first + pairs);
    const Floats<N> cosine = load<N>(cosines + pair);
    const Floats<N> sine = load<N>(sines + pair);
    for (int j = 0; j < N; ++j) {
      const float turned = a.at[j] * cosine.at[j] - b.at[j] * (sine.at[j] * rotation.direction);
      b.at[j] = b.at[j] * cosine.at[j] + a.at[j] * (sine.at[j] * rotation.direction);
      a.at[j] = turned;
    }
    if (rotation.largest != nullptr) {
      largest.see(a);
      largest.see(b);
    }
    store(first, a);
    store(first + pairs, b);
  }
  largest.raise<T>(rotation.largest);
}

}  // namespace

void CudaTokens::rotate(Tensor x, const HeadColumns& heads, const Rotary& rotary, float direction,
                        const RotatedPositions& which) {
  turned_columns(x.shape, heads, rotary);
  const size_t positions = x.shape[1], columns = x.shape.columns();
  const size_t pairs = rotary.frequencies.size();
  const Angles& angles = angles_of(rotary, which.first + positions);
  const auto* const cosines = reinterpret_cast<const float*>(angles.factors.memory().data);
  const float* const sines = cosines + angles.positions * pairs;
  const Rotation rotation = {.rows = x.shape.rows(),
                             .positions = positions,
                             .first = which.first,
                             .begins = cuda_indices_or_null(which.document_begin, x.shape.rows()),
                             .columns = columns,
                             .heads = heads,
                             .pairs = pairs,
                             .cosines = cosines,
                             .sines = sines,
                             .direction = direction,
                             .largest = x.largest};
  if (rotation.rows == 0) return;
  constexpr size_t kMostThreads = 256;
  const cudaError_t result = with_element(x.dtype, [&](auto element) {
    using T = decltype(element);
    T* const data = elements<T>(array_of(x));
    const bool in_fours = pairs % 4 == 0 && columns % 4 == 0 && heads.first % 4 == 0 &&
                          heads.stride % 4 == 0 && lie_in_fours(data);
    const size_t groups = heads.count * pairs / (in_fours ? 4 : 1);
    const auto config = config_of(queue_.stream(), dim3(unsigned(rotation.rows)),
                                  dim3(whole_warps(groups, kMostThreads)));
    return in_fours ? cudaLaunchKernelEx(&config, rotate_kernel<4, T>, rotation, data)
                    : cudaLaunchKernelEx(&config, rotate_kernel<1, T>, rotation, data);
  });
  check_cuda(result, "launch rope");
}

const CudaTokens::Angles& CudaTokens::angles_of(const Rotary& rotary, size_t positions) {
  auto found = std::ranges::find(angles_, rotary, &Angles::rotary);
  if (found == angles_.end()) found = angles_.insert(found, Angles{rotary});
  if (found->positions >= positions) return *found;
  // Positions that come one by one would each upload a table.
  positions = std::max(positions, 2 * found->positions);
  const size_t pairs = rotary.frequencies.size(), count = positions * pairs;
  std::vector<float> table(2 * count);  // the cosines, then the sines
  for (size_t i = 0; i < count; ++i) {
    const RopeFactors factors = rope_factors(rotary, i / pairs, i % pairs);
    table[i] = factors.cosine;
    table[count + i] = factors.sine;
  }
  found->factors = queue_.upload(table);
  found->positions = positions;
  return *found;
}

}  // namespace gxp
