// Backward passes of layer and RMS norms: a block has a row at a time.
#include <algorithm>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/largest.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/norm.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

constexpr unsigned kMostThreads = 1024;  // of a block
// A block's sums, so that an H100's multiprocessor holds two blocks with 228 KiB.
constexpr size_t kMostSharedBytes = 96 * 1024;

// body(i) for the first of each N columns of this thread.
template <int N, class Body>
__device__ __forceinline__ void for_columns(unsigned columns, const Body& body) {
  for (unsigned i = threadIdx.x * N; i < columns; i += blockDim.x * N) body(i);
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
struct NormRows {
  size_t rows;
  unsigned columns;
  float* dx;
  const Dout* dout;
  const float* x;
  const float* mean;  // or null
  const float* rstd;
  const Weight* weight;
  float offset;    // of the weight
  Dout* rounded;   // or null
  float* largest;  // of rounded, or null
  bool sums_dx;
  unsigned vectors;  // of sums over the rows: dweight, dbias if there is a mean, and dx if sums_dx
};

template <int N, class Dout, class Weight>
__device__ GradientMeans gradient_means(const NormRows<Dout, Weight>& norm, size_t first,
                                        float mean, float rstd) {
  GradientMeans sums{0, 0};
  for_columns<N>(norm.columns, [&](unsigned i) {
    const Floats<N> x = load<N>(norm.x + first + i);
    const Floats<N> dout = load<N>(norm.dout + first + i);
    const Floats<N> weight = load<N>(norm.weight + i);
    for (int j = 0; j < N; ++j) {
      const float g = dout.at[j] * (weight.at[j] + norm.offset);
      sums.g += g;
      sums.g_norm += g * normalise(x.at[j], mean, rstd);
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
  store_anywhere(sums, sum);
}

// A row's gradients; `sums`(vectors, columns), or null, gets its terms. The dx of a thread's first
// columns, its only ones in rows of up to 4096, is on its way while the block sums. To keep x and
// dout as well takes 52 registers, which half as many threads of a multiprocessor have; these are
// read again from the L1 cache.
template <int N, class Dout, class Weight>
__device__ void add_gradients(const NormRows<Dout, Weight>& norm, size_t row, float* sums,
                              LargestWritten& largest) {
  const size_t first = row * norm.columns;
  const float mean = norm.mean == nullptr ? 0.0f : norm.mean[row];
  const float rstd = norm.rstd[row];
  const unsigned own = threadIdx.x * N;
  Floats<N> dx_ahead = {};
  if (own < norm.columns) dx_ahead = load<N>(norm.dx + first + own);
  const GradientMeans means = gradient_means<N>(norm, first, mean, rstd);
  for_columns<N>(norm.columns, [&](unsigned i) {
    const size_t at = first + i;
    Floats<N> normalised = load<N>(norm.x + at);
    for (int j = 0; j < N; ++j) normalised.at[j] = normalise(normalised.at[j], mean, rstd);
    const Floats<N> dout = load<N>(norm.dout + at);
    if (sums != nullptr) {
      Floats<N> dweight;
      for (int j = 0; j < N; ++j) dweight.at[j] = dout.at[j] * normalised.at[j];
      add_to(sums + i, dweight);
      if (norm.mean != nullptr) add_to(sums + norm.columns + i, dout);
    }
    const Floats<N> weight = load<N>(norm.weight + i);
    Floats<N> dx = i == own ? dx_ahead : load<N>(norm.dx + at);
    for (int j = 0; j < N; ++j)
      dx.at[j] += norm_gradient(dout.at[j] * (weight.at[j] + norm.offset), normalised.at[j],
                                means.g, means.g_norm, rstd);
    store(norm.dx + at, dx);
    if (norm.rounded != nullptr) store(norm.rounded + at, dx);
    if (norm.largest != nullptr) largest.see(dx);
    if (sums != nullptr && norm.sums_dx) add_to(sums + (norm.vectors - 1) * norm.columns + i, dx);
  });
}

// The sums of a block's rows lie in shared memory where it is large enough, else in `partial`
// itself. A thread sees the same columns throughout, so there is nothing to wait for.
template <int N, class Dout, class Weight>
__global__ void __launch_bounds__(kMostThreads, kResidentThreads / kMostThreads)
    norm_backward_kernel(NormRows<Dout, Weight> norm, float* partial, bool in_shared) {
  float* const of_block =
      partial == nullptr ? nullptr : partial + size_t{blockIdx.x} * norm.vectors * norm.columns;
  float* const sums = of_block != nullptr && in_shared ? dynamic_shared<float>() : of_block;
  const auto for_sums = [&](auto body) {
    if (sums == nullptr) return;
    for (unsigned vector = 0; vector < norm.vectors; ++vector)
      for_columns<N>(norm.columns, [&](unsigned i) { body(vector * norm.columns + i); });
  };
  for_sums([&](unsigned i) { store_anywhere(sums + i, Floats<N>{}); });
  LargestWritten largest;
  for (size_t row = blockIdx.x; row < norm.rows; row += gridDim.x)
    add_gradients<N>(norm, row, sums, largest);
  largest.raise<Dout>(norm.largest);
  if (sums != of_block) for_sums([&](unsigned i) { store(of_block + i, load<N>(sums + i)); });
}

struct CudaNormBackward {
  size_t rows;
  unsigned columns;
  float* dx;            // (rows, columns), added to
  ConstCudaArray dout;  // (rows, columns)
  const float* x;       // likewise
  const float* mean;    // (rows); null for an RMS norm
  const float* rstd;    // (rows)
  ConstCudaArray weight;
  float offset;       // of the weight
  CudaArray rounded;  // as dout, or null
  float* largest;     // of rounded, or null
  bool sums_dx;
  [[nodiscard]] unsigned vectors() const { return 1u + (mean != nullptr) + sums_dx; }
};

CudaNormBackward backward_of(const NormBackward& norm) {
  const size_t rows = norm.x.shape.rows();
  const size_t columns = norm.x.shape.columns();
  GXP_ASSERT(norm.dout.shape.rows() == rows && norm.dout.shape.columns() == columns);
  GXP_ASSERT(norm.weight.count() == columns);
  const Tensor& rounded = norm.also.rounded;
  GXP_ASSERT(rounded.memory.data == nullptr ||
             (rounded.dtype == norm.dout.dtype && rounded.count() == rows * columns));
  return {rows,
          unsigned(columns),
          cuda_vector<float>(norm.dx, rows * columns),
          array_of(norm.dout),
          cuda_vector<float>(norm.x, rows * columns),
          nullptr,
          cuda_vector<float>(norm.rstd, rows),
          array_of(norm.weight),
          weight_offset(norm.form),
          array_of(rounded),
          rounded.largest,
          norm.also.column_sums.memory.data != nullptr};
}

// Enough to fill the GPU, and few enough that their sums are a small part of what is read.
size_t norm_backward_blocks(const GpuSize& gpu, size_t rows, size_t columns) {
  constexpr size_t kRowsPerBlock = 4;
  const size_t most =
      gpu.multiprocessors * (gpu.threads / whole_warps((columns + 3) / 4, kMostThreads));
  return std::min((rows + kRowsPerBlock - 1) / kRowsPerBlock, most);
}

template <class Dout, class Weight>
NormRows<Dout, Weight> rows_of(const CudaNormBackward& norm) {
  return {norm.rows,     norm.columns,
          norm.dx,       elements<Dout>(norm.dout),
          norm.x,        norm.mean,
          norm.rstd,     elements<Weight>(norm.weight),
          norm.offset,   elements<Dout>(norm.rounded),
          norm.largest,  norm.sums_dx,
          norm.vectors()};
}

// dx, and partial(blocks, vectors, columns): each block's sums. Null: none.
cudaError_t launch_norm_backward(const GpuStream& stream, const CudaNormBackward& norm,
                                 float* partial) {
  if (norm.rows == 0) return cudaSuccess;
  constexpr size_t kOfBlock = sizeof(GradientMeans[kWarpLanes]);  // sum_of_block()'s
  constexpr size_t kUnasked = 48 * 1024 - kOfBlock;               // what every kernel may have
  const size_t most = std::min(kMostSharedBytes, stream.gpu.shared_bytes - kOfBlock);
  const size_t sums_bytes = size_t{norm.vectors()} * norm.columns * sizeof(float);
  const bool in_shared = sums_bytes <= most;
  const dim3 blocks(unsigned(norm_backward_blocks(stream.gpu, norm.rows, norm.columns)));
  return with_element(norm.dout.type, [&](auto upstream) {
    return with_element(norm.weight.type, [&](auto of_weight) {
      using Dout = decltype(upstream);
      using Weight = decltype(of_weight);
      const NormRows<Dout, Weight> body = rows_of<Dout, Weight>(norm);
      const bool in_fours = norm.columns % 4 == 0 &&
                            lie_in_fours(body.dx, body.dout, body.x, body.weight, body.rounded);
      const size_t groups = in_fours ? norm.columns / 4 : norm.columns;
      const auto config = config_of(stream, blocks, dim3(whole_warps(groups, kMostThreads)),
                                    in_shared ? sums_bytes : 0);
      const auto launch = [&](auto* kernel) {
        if (config.dynamicSmemBytes > kUnasked) {
          const cudaError_t error = cudaFuncSetAttribute(
              kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sums_bytes));
          if (error != cudaSuccess) return error;
        }
        return cudaLaunchKernelEx(&config, kernel, body, partial, in_shared);
      };
      return in_fours ? launch(norm_backward_kernel<4, Dout, Weight>)
                      : launch(norm_backward_kernel<1, Dout, Weight>);
    });
  });
}

void launch_backward(CudaQueue& queue, const CudaNormBackward& body, const NormBackward& norm) {
  const size_t columns = body.columns;
  const size_t blocks = norm_backward_blocks(queue.stream().gpu, body.rows, columns);
  const size_t width = body.vectors() * columns;
  const bool any =
      norm.dweight.memory.data != nullptr || norm.dbias.memory.data != nullptr || body.sums_dx;
  float* const partial = any ? queue.scratch_of<float>(blocks * width) : nullptr;
  check_cuda(launch_norm_backward(queue.stream(), body, partial), "launch a norm's backward");
  if (partial == nullptr) return;
  const float* from = partial;
  const auto add = [&](const Tensor& sums) {
    auto* const to = cuda_vector_or_null<float>(sums, columns);
    if (to != nullptr) add_columns(queue, blocks, columns, width, to, from);
    from += columns;
  };
  add(norm.dweight);
  if (body.mean != nullptr) add(norm.dbias);
  if (body.sums_dx) add(norm.also.column_sums);
}

}  // namespace

void CudaNorms::layernorm_backward(const NormBackward& norm) {
  CudaNormBackward body = backward_of(norm);
  body.mean = cuda_vector<float>(norm.mean, body.rows);
  launch_backward(queue_, body, norm);
}

void CudaNorms::rmsnorm_backward(const NormBackward& norm) {
  launch_backward(queue_, backward_of(norm), norm);
}

}  // namespace gxp
