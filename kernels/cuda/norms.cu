// Layer and RMS norms. A row's elements are read from the GPU's memory once and then from the L1
// cache: a grid never has more rows in work than L1 holds.
#include <cmath>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/norm.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

constexpr size_t kL1Floats = 192 * 1024 / sizeof(float);

constexpr unsigned kMostThreads = 1024;  // of a block

// Longer rows are given to a whole block: with a warp each, L1 would hold too few of them to have
// enough loads under way.
constexpr size_t kWarpColumns = 2048;
constexpr unsigned kWarpsPerBlock = 8;
constexpr unsigned kLongRowThreads = 512;

// The team of threads with one threadIdx.y has a row: a warp, or the block.
__device__ float sum_of_team(float value) {
  return blockDim.x == kWarpLanes ? reduce_warp(value, Add()) : reduce_block(value, Add(), 0.0f);
}

// body(i) for the first of each N columns of this thread.
template <int N, class Body>
__device__ __forceinline__ void for_columns(size_t columns, const Body& body) {
  for (size_t i = size_t{threadIdx.x} * N; i < columns; i += size_t{blockDim.x} * N) body(i);
}

struct Statistics {
  float mean, rstd;
};

// The variance is summed around the mean: sum(x^2) / C - mean^2 would cancel.
template <int N>
__device__ Statistics statistics_of(const float* x, size_t columns, bool has_mean, float eps) {
  float sum = 0;
  if (has_mean) {
    for_columns<N>(columns, [&](size_t i) {
      const Floats<N> values = load<N>(x + i);
      for (int j = 0; j < N; ++j) sum += values.at[j];
    });
  }
  const float mean = has_mean ? sum_of_team(sum) / float(columns) : 0.0f;
  float squares = 0;
  for_columns<N>(columns, [&](size_t i) {
    const Floats<N> values = load<N>(x + i);
    for (int j = 0; j < N; ++j) squares += (values.at[j] - mean) * (values.at[j] - mean);
  });
  const float variance = sum_of_team(squares) / float(columns);
  return {mean, rstd_of(variance, eps)};
}

// Computes a row's statistics and keeps them.
struct MakeStatistics {
  float* mean;
  float* rstd;
  float eps;
  template <int N>
  __device__ Statistics of_row(size_t row, const float* x, size_t columns, bool has_mean) const {
    const Statistics made = statistics_of<N>(x, columns, has_mean, eps);
    if (threadIdx.x == 0) {
      if (has_mean) mean[row] = made.mean;
      rstd[row] = made.rstd;
    }
    return made;
  }
};

struct ReadStatistics {
  const float* mean;
  const float* rstd;
  template <int N>
  __device__ Statistics of_row(size_t row, const float* /*x*/, size_t /*columns*/,
                               bool has_mean) const {
    return {has_mean ? mean[row] : 0.0f, rstd[row]};
  }
};

template <class Out, class Weight>
struct Norm {
  size_t rows, columns;
  Out* out;
  const float* x;
  const Weight* weight;
  const Weight* bias;  // or null
};

template <int N, class Out, class Weight, class Source>
__global__ void norm_kernel(Norm<Out, Weight> norm, Source source) {
  const size_t step = size_t{gridDim.x} * blockDim.y;
  for (size_t row = size_t{blockIdx.x} * blockDim.y + threadIdx.y; row < norm.rows; row += step) {
    const float* const x = norm.x + row * norm.columns;
    Out* const out = norm.out + row * norm.columns;
    const Statistics known = source.template of_row<N>(row, x, norm.columns, norm.bias != nullptr);
    for_columns<N>(norm.columns, [&](size_t i) {
      Floats<N> values = load<N>(x + i);
      const Floats<N> weight = load<N>(norm.weight + i);
      Floats<N> bias{};
      if (norm.bias != nullptr) bias = load<N>(norm.bias + i);
      for (int j = 0; j < N; ++j)
        values.at[j] = normalise(values.at[j], known.mean, known.rstd) * weight.at[j] + bias.at[j];
      store(out + i, values);
    });
  }
}

// An RMS norm is a layer norm whose means and biases are zero: it has no `bias`, and its means are
// null.
struct CudaNorm {
  size_t rows, columns;
  CudaArray out;          // (rows, columns)
  const float* x;         // likewise
  ConstCudaArray weight;  // (columns)
  ConstCudaArray bias;    // (columns), of weight's type
};

CudaNorm norm_of(const Tensor& out, const ConstTensor& x, const ConstTensor& weight,
                 const ConstTensor& bias) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  GXP_ASSERT(out.shape.rows() == rows && out.shape.columns() == columns);
  GXP_ASSERT(weight.count() == columns);
  return {rows,
          columns,
          array_of(out),
          cuda_vector<float>(x, rows * columns),
          array_of(weight),
          array_of(bias)};
}

CudaNorm layernorm_of(const Tensor& out, const ConstTensor& x, const ConstTensor& weight,
                      const ConstTensor& bias) {
  GXP_ASSERT(bias.count() == weight.count() && bias.dtype == weight.dtype);
  return norm_of(out, x, weight, bias);
}

template <class Source>
cudaError_t launch_norm(cudaStream_t stream, const CudaNorm& norm, const Source& source) {
  if (norm.rows == 0) return cudaSuccess;
  const bool is_long = norm.columns > kWarpColumns;
  const dim3 threads = is_long ? dim3(kLongRowThreads) : dim3(unsigned(kWarpLanes), kWarpsPerBlock);
  const size_t most_rows = kResidentThreads / threads.x;
  const size_t rows_in_l1 = std::clamp(kL1Floats / norm.columns, size_t{threads.y}, most_rows);
  const size_t most_blocks = kMultiprocessors * (rows_in_l1 / threads.y);
  const size_t blocks = std::min((norm.rows + threads.y - 1) / threads.y, most_blocks);
  const auto config = config_of(stream, dim3(unsigned(blocks)), threads);
  return with_element(norm.out.type, [&](auto to) {
    return with_element(norm.weight.type, [&](auto of_weight) {
      using Out = decltype(to);
      using Weight = decltype(of_weight);
      const Norm<Out, Weight> body{norm.rows,
                                   norm.columns,
                                   elements<Out>(norm.out),
                                   norm.x,
                                   elements<Weight>(norm.weight),
                                   elements<Weight>(norm.bias)};
      const bool in_fours =
          norm.columns % 4 == 0 && lie_in_fours(body.out, body.x, body.weight, body.bias);
      return in_fours
                 ? cudaLaunchKernelEx(&config, norm_kernel<4, Out, Weight, Source>, body, source)
                 : cudaLaunchKernelEx(&config, norm_kernel<1, Out, Weight, Source>, body, source);
    });
  });
}

// Means over a row of g = dout * weight and of g * normalised x.
struct GradientMeans {
  float g, g_norm;
};

// The block's sums of both.
__device__ GradientMeans sum_of_block(GradientMeans sums) {
  __shared__ GradientMeans of_warps[kWarpLanes];
  const auto of_warp = [](GradientMeans part) {
    return GradientMeans{reduce_warp(part.g, Add()), reduce_warp(part.g_norm, Add())};
  };
  const unsigned lane = threadIdx.x % kWarpLanes;
  sums = of_warp(sums);
  __syncthreads();
  if (lane == 0) of_warps[threadIdx.x / kWarpLanes] = sums;
  __syncthreads();
  return of_warp(lane < blockDim.x / kWarpLanes ? of_warps[lane] : GradientMeans{0, 0});
}

template <class Dout, class Weight>
struct NormBackward {
  size_t rows, columns;
  float* dx;
  const Dout* dout;
  const float* x;
  const float* mean;  // or null
  const float* rstd;
  const Weight* weight;
};

template <int N, class Dout, class Weight>
__device__ GradientMeans gradient_means(const NormBackward<Dout, Weight>& norm, size_t first,
                                        Statistics known) {
  GradientMeans sums{0, 0};
  for_columns<N>(norm.columns, [&](size_t i) {
    const Floats<N> x = load<N>(norm.x + first + i);
    const Floats<N> dout = load<N>(norm.dout + first + i);
    const Floats<N> weight = load<N>(norm.weight + i);
    for (int j = 0; j < N; ++j) {
      const float g = dout.at[j] * weight.at[j];
      sums.g += g;
      sums.g_norm += g * normalise(x.at[j], known.mean, known.rstd);
    }
  });
  sums = sum_of_block(sums);
  const auto columns = float(norm.columns);
  return {norm.mean == nullptr ? 0.0f : sums.g / columns, sums.g_norm / columns};
}

template <int N>
__device__ __forceinline__ void add_to(float* sums, const Floats<N>& terms) {
  Floats<N> sum = load<N>(sums);
  for (int j = 0; j < N; ++j) sum.at[j] += terms.at[j];
  store(sums, sum);
}

// A row's gradients; `sums`(2, columns), or null, gets its terms of dweight and dbias.
template <int N, class Dout, class Weight>
__device__ void add_gradients(const NormBackward<Dout, Weight>& norm, size_t row, float* sums) {
  const size_t first = row * norm.columns;
  const Statistics known = {norm.mean == nullptr ? 0.0f : norm.mean[row], norm.rstd[row]};
  const GradientMeans means = gradient_means<N>(norm, first, known);
  for_columns<N>(norm.columns, [&](size_t i) {
    const Floats<N> x = load<N>(norm.x + first + i);
    const Floats<N> dout = load<N>(norm.dout + first + i);
    const Floats<N> weight = load<N>(norm.weight + i);
    Floats<N> dx, dweight;
    for (int j = 0; j < N; ++j) {
      const float normalised = normalise(x.at[j], known.mean, known.rstd);
      dweight.at[j] = dout.at[j] * normalised;
      dx.at[j] =
          norm_gradient(dout.at[j] * weight.at[j], normalised, means.g, means.g_norm, known.rstd);
    }
    add_to(norm.dx + first + i, dx);
    if (sums == nullptr) return;
    add_to(sums + i, dweight);
    if (norm.mean != nullptr) add_to(sums + norm.columns + i, dout);
  });
}

// The sums of a block's rows lie in shared memory where it is large enough, else in `partial`
// itself. A thread sees the same columns throughout, so there is nothing to wait for.
template <int N, class Dout, class Weight>
__global__ void __launch_bounds__(kMostThreads)
    norm_backward_kernel(NormBackward<Dout, Weight> norm, float* partial, bool in_shared) {
  float* const of_block = partial == nullptr ? nullptr : partial + blockIdx.x * 2 * norm.columns;
  float* const sums = of_block != nullptr && in_shared ? dynamic_shared<float>() : of_block;
  const auto for_sums = [&](auto body) {
    if (sums == nullptr) return;
    for_columns<N>(norm.columns, [&](size_t i) { body(i); });
    for_columns<N>(norm.columns, [&](size_t i) { body(norm.columns + i); });
  };
  for_sums([&](size_t i) { store(sums + i, Floats<N>{}); });
  for (size_t row = blockIdx.x; row < norm.rows; row += gridDim.x)
    add_gradients<N>(norm, row, sums);
  if (sums != of_block) for_sums([&](size_t i) { store(of_block + i, load<N>(sums + i)); });
}

struct CudaNormBackward {
  size_t rows, columns;
  float* dx;            // (rows, columns), added to
  ConstCudaArray dout;  // (rows, columns)
  const float* x;       // likewise
  const float* mean;    // (rows); null for an RMS norm
  const float* rstd;    // (rows)
  ConstCudaArray weight;
};

CudaNormBackward backward_of(const Tensor& dx, const ConstTensor& dout, const ConstTensor& x,
                             const ConstTensor& rstd, const ConstTensor& weight) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  GXP_ASSERT(dout.shape.rows() == rows && dout.shape.columns() == columns);
  GXP_ASSERT(weight.count() == columns);
  return {rows,
          columns,
          cuda_vector<float>(dx, rows * columns),
          array_of(dout),
          cuda_vector<float>(x, rows * columns),
          nullptr,
          cuda_vector<float>(rstd, rows),
          array_of(weight)};
}

// Enough to fill the GPU, and few enough that their sums are a small part of what is read.
size_t norm_backward_blocks(size_t rows, size_t columns) {
  constexpr size_t kRowsPerBlock = 4;
  const size_t most =
      kMultiprocessors * (kResidentThreads / whole_warps((columns + 3) / 4, kMostThreads));
  return std::min((rows + kRowsPerBlock - 1) / kRowsPerBlock, most);
}

// dx, and partial(blocks, 2, columns): each block's sums for dweight, then for dbias. Null: none.
cudaError_t launch_norm_backward(cudaStream_t stream, const CudaNormBackward& norm,
                                 float* partial) {
  if (norm.rows == 0) return cudaSuccess;
  constexpr size_t kSharedBytes = 48 * 1024;  // what every kernel may have unasked
  const size_t sums_bytes = 2 * norm.columns * sizeof(float);
  const bool in_shared = sums_bytes <= kSharedBytes;
  const dim3 blocks(unsigned(norm_backward_blocks(norm.rows, norm.columns)));
  return with_element(norm.dout.type, [&](auto upstream) {
    return with_element(norm.weight.type, [&](auto of_weight) {
      using Dout = decltype(upstream);
      using Weight = decltype(of_weight);
      const NormBackward<Dout, Weight> body{
          norm.rows, norm.columns, norm.dx,   elements<Dout>(norm.dout),
          norm.x,    norm.mean,    norm.rstd, elements<Weight>(norm.weight)};
      const bool in_fours =
          norm.columns % 4 == 0 && lie_in_fours(body.dx, body.dout, body.x, body.weight);
      const size_t groups = in_fours ? norm.columns / 4 : norm.columns;
      const auto config = config_of(stream, blocks, dim3(whole_warps(groups, kMostThreads)),
                                    in_shared ? sums_bytes : 0);
      return in_fours ? cudaLaunchKernelEx(&config, norm_backward_kernel<4, Dout, Weight>, body,
                                           partial, in_shared)
                      : cudaLaunchKernelEx(&config, norm_backward_kernel<1, Dout, Weight>, body,
                                           partial, in_shared);
    });
  });
}

void launch_backward(CudaQueue& queue, const CudaNormBackward& norm, const Tensor& dweight,
                     const Tensor& dbias) {
  const size_t columns = norm.columns;
  const size_t blocks = norm_backward_blocks(norm.rows, columns);
  auto* const to_weight = cuda_vector_or_null<float>(dweight, columns);
  auto* const to_bias = cuda_vector_or_null<float>(dbias, columns);
  const bool sums = to_weight != nullptr || to_bias != nullptr;
  float* const partial = sums ? queue.scratch_of<float>(blocks * 2 * columns) : nullptr;
  check_cuda(launch_norm_backward(queue.stream(), norm, partial), "launch a norm's backward");
  const auto add = [&](float* to, size_t first) {
    if (to != nullptr) add_columns(queue, blocks, columns, 2 * columns, to, partial + first);
  };
  add(to_weight, 0);
  add(to_bias, columns);
}

}  // namespace

void CudaNorms::layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x,
                                  ConstTensor weight, ConstTensor bias, float eps) {
  const CudaNorm norm = layernorm_of(out, x, weight, bias);
  const MakeStatistics source{cuda_vector<float>(mean, norm.rows),
                              cuda_vector<float>(rstd, norm.rows), eps};
  check_cuda(launch_norm(queue_.stream(), norm, source), "launch layernorm_forward");
}

void CudaNorms::layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                                ConstTensor weight, ConstTensor bias) {
  const CudaNorm norm = layernorm_of(out, x, weight, bias);
  const ReadStatistics source{cuda_vector<float>(mean, norm.rows),
                              cuda_vector<float>(rstd, norm.rows)};
  check_cuda(launch_norm(queue_.stream(), norm, source), "launch layernorm_apply");
}

void CudaNorms::layernorm_backward(Tensor dx, Tensor dweight, Tensor dbias, ConstTensor dout,
                                   ConstTensor x, ConstTensor mean, ConstTensor rstd,
                                   ConstTensor weight) {
  CudaNormBackward norm = backward_of(dx, dout, x, rstd, weight);
  norm.mean = cuda_vector<float>(mean, norm.rows);
  launch_backward(queue_, norm, dweight, dbias);
}

void CudaNorms::rmsnorm_forward(Tensor out, Tensor rstd, ConstTensor x, ConstTensor weight,
                                float eps) {
  const CudaNorm norm = norm_of(out, x, weight, {});
  const MakeStatistics source{nullptr, cuda_vector<float>(rstd, norm.rows), eps};
  check_cuda(launch_norm(queue_.stream(), norm, source), "launch rmsnorm_forward");
}

void CudaNorms::rmsnorm_apply(Tensor out, ConstTensor x, ConstTensor rstd, ConstTensor weight) {
  const CudaNorm norm = norm_of(out, x, weight, {});
  const ReadStatistics source{nullptr, cuda_vector<float>(rstd, norm.rows)};
  check_cuda(launch_norm(queue_.stream(), norm, source), "launch rmsnorm_apply");
}

void CudaNorms::rmsnorm_backward(Tensor dx, Tensor dweight, ConstTensor dout, ConstTensor x,
                                 ConstTensor rstd, ConstTensor weight) {
  launch_backward(queue_, backward_of(dx, dout, x, rstd, weight), dweight, {});
}

}  // namespace gxp
