// A block has a row. It reads the logits twice, from the GPU's memory and then from the L2 cache,
// which holds the rows of all blocks in work.
#include <cfloat>
#include <cmath>
#include <type_traits>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/softmax.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

struct Targets {
  size_t rows, columns;
  const int32_t* targets;  // (rows)
  float* losses;           // (rows); NaN where the target lies beyond the columns
  int* outside;            // becomes 1 where one does
};

// body(i, n), n an integral constant: elements [i, i + n) of the row. Groups of four are read where
// they lie so, whatever the row begins with: a row of an odd number of halves does not lie in
// fours.
template <int N>
struct Count {
  static constexpr int value = N;
};
template <class T, class Body>
__device__ __forceinline__ void for_row(const T* row, size_t columns, const Body& body) {
  const size_t past_four = reinterpret_cast<uintptr_t>(row) / sizeof(T) % 4;
  const size_t before = past_four == 0 ? 0 : 4 - past_four;
  const size_t head = before < columns ? before : columns;
  const size_t groups = (columns - head) / 4;
  if (threadIdx.x < head) body(size_t{threadIdx.x}, Count<1>{});
  for (size_t group = threadIdx.x; group < groups; group += blockDim.x)
    body(head + group * 4, Count<4>{});
  const size_t last = head + groups * 4 + threadIdx.x;
  if (last < columns) body(last, Count<1>{});
}

// The part joined by N values more. The maximum grows seldom: only then are the terms so far
// scaled. It is never NaN; where a value is, the sum becomes it.
template <int N>
__device__ __forceinline__ void join(SoftmaxPart<float>& part, const Floats<N>& values) {
  float maximum = part.maximum;
  for (int j = 0; j < N; ++j) maximum = Max()(values.at[j], maximum);
  if (maximum > part.maximum) part = {maximum, part.sum * rescale(part.maximum, maximum)};
  for (int j = 0; j < N; ++j) part.sum += exp_of_nonpositive(values.at[j] - part.maximum);
}

template <class T>
__device__ SoftmaxPart<float> softmax_of(const T* row, size_t columns) {
  // Finite, so that logits of -infinity leave it empty instead of NaN.
  SoftmaxPart<float> part = {-FLT_MAX, 0.0f};
  for_row(row, columns, [&](size_t i, auto count) { join(part, load<count.value>(row + i)); });
  const float maximum = reduce_block(part.maximum, Max(), -FLT_MAX);
  return {maximum, reduce_block(part.sum * rescale(part.maximum, maximum), Add(), 0.0f)};
}

__device__ float loss_of(SoftmaxPart<float> row, float target_logit) {
  return float(double(row.maximum) - target_logit + log(double(row.sum)));
}

template <class T>
__device__ void store_gradient(T* row, size_t columns, SoftmaxPart<float> whole, size_t target,
                               float scale) {
  const float factor = scale / whole.sum;
  for_row(row, columns, [&](size_t i, auto count) {
    Floats<count.value> values = load<count.value>(row + i);
    for (int j = 0; j < count.value; ++j) {
      values.at[j] = exp_of_nonpositive(values.at[j] - whole.maximum) * factor;
      if (i + size_t(j) == target) values.at[j] -= scale;
    }
    store(row + i, values);
  });
}

template <class T>
__device__ void clear_row(T* row, size_t columns) {
  for_row(row, columns, [&](size_t i, auto count) { store(row + i, Floats<count.value>{}); });
}

// A row without a loss: its target is negative, or lies outside.
__device__ void store_no_loss(const Targets& rows, bool lies_outside) {
  if (threadIdx.x != 0) return;
  if (lies_outside) *rows.outside = 1;
  rows.losses[blockIdx.x] = lies_outside ? nanf("") : 0.0f;
}

// T: const where there is no gradient.
template <class T>
__global__ void __launch_bounds__(1024) classifier_kernel(Targets rows, T* logits, float scale) {
  const int32_t target = rows.targets[blockIdx.x];
  T* const row = logits + blockIdx.x * rows.columns;
  const bool lies_outside = target >= 0 && size_t(target) >= rows.columns;
  if (target < 0 || lies_outside) {
    store_no_loss(rows, lies_outside);
    if constexpr (!std::is_const_v<T>) clear_row(row, rows.columns);
    return;
  }
  const float target_logit = to_float(row[target]);  // before the row changes
  const SoftmaxPart<float> whole = softmax_of<std::remove_const_t<T>>(row, rows.columns);
  if (threadIdx.x == 0) rows.losses[blockIdx.x] = loss_of(whole, target_logit);
  if constexpr (!std::is_const_v<T>)
    store_gradient(row, rows.columns, whole, size_t(target), scale);
}

// `Logits`: Tensor, or ConstTensor where there is no gradient.
template <class Logits>
void launch(CudaQueue& queue, const Logits& logits, const Tensor& losses,
            const ConstTensor& targets, float scale) {
  const Targets rows = {logits.shape.rows(), logits.shape.columns(),
                        cuda_indices(targets, logits.shape.rows()),
                        cuda_vector<float>(losses, logits.shape.rows()), queue.outside_flag()};
  if (rows.rows == 0) return;
  const auto config = config_of(queue.stream(), dim3(unsigned(rows.rows)),
                                dim3(whole_warps((rows.columns + 3) / 4, 1024)));
  const cudaError_t result = with_element(logits.dtype, [&](auto element) {
    auto* const data = elements<decltype(element)>(array_of(logits));
    return cudaLaunchKernelEx(&config, classifier_kernel<std::remove_pointer_t<decltype(data)>>,
                              rows, data, scale);
  });
  check_cuda(result, "launch classifier");
}

}  // namespace

void CudaTokens::classifier(Tensor logits, Tensor losses, ConstTensor targets, float scale) {
  launch(queue_, logits, losses, targets, scale);
}

void CudaTokens::classifier_loss(Tensor losses, ConstTensor logits, ConstTensor targets) {
  launch(queue_, logits, losses, targets, 0.0f);
}

}  // namespace gxp
