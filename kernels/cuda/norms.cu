// Forward passes of layer and RMS norms. A row's elements are read from the GPU's memory once and
// then from the L1 cache: a grid never has more rows in work than L1 holds.
#include <algorithm>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/largest.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/norm.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

constexpr size_t kL1Floats = 192 * 1024 / sizeof(float);

// Longer rows are given to a whole block: with a warp each, L1 would hold too few of them to have
// enough loads under way.
constexpr size_t kWarpColumns = 2048;
constexpr unsigned kWarpsPerBlock = 8;
constexpr unsigned kLongRowThreads = 512;

// The team of threads with one threadIdx.y has a row: a warp, or the block.
__device__ float sum_of_team(float value) {
  return blockDim.x == kWarpLanes ? reduce_warp(value, Add()) : reduce_block(value, Add(), 0.0f);
}

// body(i, x's N columns from i on) for the first of each N columns of this thread. Four groups of N
// are loaded before the first is used, so that a warp waits a quarter as often.
template <int N, class Body>
__device__ __forceinline__ void for_values(const float* x, size_t columns, const Body& body) {
  constexpr size_t kInFlight = 4;
  const size_t step = size_t{blockDim.x} * N;
  for (size_t i = size_t{threadIdx.x} * N; i < columns; i += kInFlight * step) {
    Floats<N> values[kInFlight] = {};
#pragma unroll
    for (size_t k = 0; k < kInFlight; ++k)
      if (i + k * step < columns) values[k] = load<N>(x + i + k * step);
#pragma unroll
    for (size_t k = 0; k < kInFlight; ++k)
      if (i + k * step < columns) body(i + k * step, values[k]);
  }
}

struct Statistics {
  float mean, rstd;
};

// The variance is summed around the mean: sum(x^2) / C - mean^2 would cancel.
template <int N>
__device__ Statistics statistics_of(const float* x, size_t columns, bool has_mean, float eps) {
  float sum = 0;
  if (has_mean) {
    for_values<N>(x, columns, [&](size_t, const Floats<N>& values) {
      for (int j = 0; j < N; ++j) sum += values.at[j];
    });
  }
  const float mean = has_mean ? sum_of_team(sum) / float(columns) : 0.0f;
  float squares = 0;
  for_values<N>(x, columns, [&](size_t, const Floats<N>& values) {
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
  float offset;        // of the weight
  float* largest;      // of out, or null
};

template <int N, class Out, class Weight, class Source>
__global__ void norm_kernel(Norm<Out, Weight> norm, Source source) {
  const size_t step = size_t{gridDim.x} * blockDim.y;
  LargestWritten largest;
  for (size_t row = size_t{blockIdx.x} * blockDim.y + threadIdx.y; row < norm.rows; row += step) {
    const float* const x = norm.x + row * norm.columns;
    Out* const out = norm.out + row * norm.columns;
    const Statistics known = source.template of_row<N>(row, x, norm.columns, norm.bias != nullptr);
    for_values<N>(x, norm.columns, [&](size_t i, Floats<N> values) {
      const Floats<N> weight = load<N>(norm.weight + i);
      Floats<N> bias{};
      if (norm.bias != nullptr) bias = load<N>(norm.bias + i);
      for (int j = 0; j < N; ++j)
        values.at[j] =
            normalise(values.at[j], known.mean, known.rstd) * (weight.at[j] + norm.offset) +
            bias.at[j];
      if (norm.largest != nullptr) largest.see(values);
      store(out + i, values);
    });
  }
  largest.raise<Out>(norm.largest);
}

// An RMS norm is a layer norm whose means and biases are zero: it has no `bias`, and its means are
// null.
struct CudaNorm {
  size_t rows, columns;
  CudaArray out;          // (rows, columns)
  const float* x;         // likewise
  ConstCudaArray weight;  // (columns)
  ConstCudaArray bias;    // (columns), of weight's type
  float offset;           // of the weight
  float* largest;         // of out, or null
};

CudaNorm norm_of(const Tensor& out, const ConstTensor& x, const ConstTensor& weight,
                 const ConstTensor& bias, RmsWeight form = RmsWeight::kStored) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  GXP_ASSERT(out.shape.rows() == rows && out.shape.columns() == columns);
  GXP_ASSERT(weight.count() == columns);
  return {rows,
          columns,
          array_of(out),
          cuda_vector<float>(x, rows * columns),
          array_of(weight),
          array_of(bias),
          weight_offset(form),
          out.largest};
}

CudaNorm layernorm_of(const Tensor& out, const ConstTensor& x, const ConstTensor& weight,
                      const ConstTensor& bias) {
  GXP_ASSERT(bias.count() == weight.count() && bias.dtype == weight.dtype);
  return norm_of(out, x, weight, bias);
}

template <class Source>
cudaError_t launch_norm(const GpuStream& stream, const CudaNorm& norm, const Source& source) {
  if (norm.rows == 0) return cudaSuccess;
  const bool is_long = norm.columns > kWarpColumns;
  const dim3 threads = is_long ? dim3(kLongRowThreads) : dim3(unsigned(kWarpLanes), kWarpsPerBlock);
  // With four loads each under way, half of a multiprocessor's threads keep the memory busy, and
  // each may have twice the registers.
  const size_t most_rows = stream.gpu.threads / 2 / threads.x;
  const size_t rows_in_l1 = std::clamp(kL1Floats / norm.columns, size_t{threads.y}, most_rows);
  const size_t most_blocks = stream.gpu.multiprocessors * (rows_in_l1 / threads.y);
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
                                   elements<Weight>(norm.bias),
                                   norm.offset,
                                   norm.largest};
      const bool in_fours =
          norm.columns % 4 == 0 && lie_in_fours(body.out, body.x, body.weight, body.bias);
      return in_fours
                 ? cudaLaunchKernelEx(&config, norm_kernel<4, Out, Weight, Source>, body, source)
                 : cudaLaunchKernelEx(&config, norm_kernel<1, Out, Weight, Source>, body, source);
    });
  });
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

void CudaNorms::rmsnorm_forward(Tensor out, Tensor rstd, ConstTensor x, ConstTensor weight,
                                float eps, RmsWeight form) {
  const CudaNorm norm = norm_of(out, x, weight, {}, form);
  const MakeStatistics source{nullptr, cuda_vector<float>(rstd, norm.rows), eps};
  check_cuda(launch_norm(queue_.stream(), norm, source), "launch rmsnorm_forward");
}

void CudaNorms::rmsnorm_apply(Tensor out, ConstTensor x, ConstTensor rstd, ConstTensor weight,
                              RmsWeight form) {
  const CudaNorm norm = norm_of(out, x, weight, {}, form);
  const ReadStatistics source{nullptr, cuda_vector<float>(rstd, norm.rows)};
  check_cuda(launch_norm(queue_.stream(), norm, source), "launch rmsnorm_apply");
}

}  // namespace gxp
