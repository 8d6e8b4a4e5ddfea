#include <utility>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/gemm/cuda_float8.h"
#include "kernels/cuda/largest.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/float8.h"
#include "lib/base/bytes.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

// The scale of one matrix, in the GPU's memory: nobody on the host waits for it. cuBLASLt refuses a
// product whose factors do not lie at multiples of 16 bytes (13.1 on an H100: "not supported").
struct Float8Scale {
  alignas(16) float factor;  // times a code's number is what the matrix has
  float largest;             // |x| of it, unless the tensor has a place for that
};

struct Float8Codes {
  Float8 type;
  uint8_t* as_stored = nullptr;   // (rows, columns); none if null
  uint8_t* transposed = nullptr;  // (columns, float8_rows(rows)); none if null
};

// The codes of four numbers, the first in the lowest byte.
template <Float8 type>
__device__ __forceinline__ uint32_t encode_four(const Floats<4>& x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16_t low;
  uint16_t high;
  if constexpr (type == Float8::kE4M3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(x.at[1]), "f"(x.at[0]));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(x.at[3]), "f"(x.at[2]));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(low) : "f"(x.at[1]), "f"(x.at[0]));
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(high) : "f"(x.at[3]), "f"(x.at[2]));
  }
  return uint32_t{low} | uint32_t{high} << 16;
#else
  const Float8Format format = format_of(type);
  uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    word |= uint32_t{encode_float8(round_to_float8(x.at[i], format), format)} << (8 * i);
  return word;
#endif
}

// A block of 16 x 16 threads turns a tile, each thread 4 x 4 elements of it.
constexpr unsigned kTile = 64;
constexpr unsigned kWords = kTile / 4;

template <class T>
struct Matrix {
  size_t rows, columns;
  const T* x;
  const float* largest;  // |x|
};

// Of numbers whose largest |x| nobody has raised (largest.cuh): not wrong codes, but NaNs.
__device__ __forceinline__ float scale_of(float largest, Float8 type) {
  const auto bits = bits_as<uint32_t>(largest);
  return bits < LargestWritten::kLeast ? bits_as<float>(0x7fc00000u) : float8_scale(bits, type);
}

template <Float8 type, class T>
__global__ void float8_kernel(Matrix<T> matrix, Float8Codes codes, float* factor) {
  __shared__ uint32_t tile[kTile][kWords + 1];  // of a column, words of 4 rows
  const float scale = scale_of(*matrix.largest, type);
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0)
    *factor = 1.0f / scale;
  const size_t column = size_t{blockIdx.x} * kTile + threadIdx.x * 4;
  uint32_t words[4];  // of a row, 4 columns
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    const size_t row = size_t{blockIdx.y} * kTile + threadIdx.y * 4 + i;
    words[i] = 0;
    if (row >= matrix.rows || column >= matrix.columns) continue;
    Floats<4> values = load<4>(matrix.x + row * matrix.columns + column);
#pragma unroll
    for (int j = 0; j < 4; ++j) values.at[j] *= scale;
    words[i] = encode_four<type>(values);
    if (codes.as_stored != nullptr)
      *reinterpret_cast<uint32_t*>(codes.as_stored + row * matrix.columns + column) = words[i];
  }
  if (codes.transposed == nullptr) return;
#pragma unroll
  for (unsigned j = 0; j < 4; ++j) {
    uint32_t turned = 0;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) turned |= ((words[i] >> (8 * j)) & 0xffu) << (8 * i);
    tile[threadIdx.x * 4 + j][threadIdx.y] = turned;
  }
  __syncthreads();
  const size_t rows = float8_rows(matrix.rows);  // those beyond are words of zeros
  const size_t row = size_t{blockIdx.y} * kTile + threadIdx.x * 4;
  for (unsigned j = threadIdx.y; j < kTile; j += kWords) {
    const size_t at = size_t{blockIdx.x} * kTile + j;
    if (row >= rows || at >= matrix.columns) continue;
    *reinterpret_cast<uint32_t*>(codes.transposed + at * rows + row) = tile[j][threadIdx.x];
  }
}

template <Float8 type, class T>
cudaError_t launch(cudaStream_t stream, const Matrix<T>& matrix, const Float8Codes& codes,
                   float* factor) {
  const dim3 tiles(unsigned((matrix.columns + kTile - 1) / kTile),
                   unsigned((matrix.rows + kTile - 1) / kTile));
  const auto config = config_of(stream, tiles, dim3(kWords, kWords));
  return cudaLaunchKernelEx(&config, float8_kernel<type, T>, matrix, codes, factor);
}

// Makes the codes of x, in one read of it, and their factor. Columns are a multiple of 4 and x lies
// in fours.
cudaError_t launch_float8(cudaStream_t stream, const ConstTensor& x, const float* largest,
                          const Float8Codes& codes, float* factor) {
  return with_element(x.dtype, [&](auto element) {
    using T = decltype(element);
    const Matrix<T> matrix{x.shape.rows(), x.shape.columns(), elements<T>(array_of(x)), largest};
    if (matrix.columns % 4 != 0 || !lie_in_fours(matrix.x)) return cudaErrorInvalidValue;
    return codes.type == Float8::kE4M3 ? launch<Float8::kE4M3>(stream, matrix, codes, factor)
                                       : launch<Float8::kE5M2>(stream, matrix, codes, factor);
  });
}

// The place of x's largest |x|; if it has none, of_all's, for which x is read.
const float* largest_of(const CudaQueue& queue, const ConstTensor& x, Float8Scale* of_all) {
  if (x.largest != nullptr) return x.largest;
  float* const place = &of_all->largest;
  check_cuda(cudaMemsetAsync(place, 0, sizeof *place, queue.stream()), "clear largest");
  raise_largest(queue, place, x);
  return place;
}

// Where they lie, from `at` on, which moves past them.
struct Float8Buffers {
  Float8Codes codes;
  Float8Scale* scale;
  [[nodiscard]] Float8Matrix matrix() const {
    return {codes.as_stored, codes.transposed, &scale->factor, codes.type};
  }
};

Float8Buffers place_float8(std::byte*& at, const ConstTensor& x, Float8 type,
                           Float8Layouts layouts) {
  const auto take = [&](size_t bytes) {
    return std::exchange(at, at + round_up(bytes, kProductCopyAlignment));
  };
  auto* const scale = reinterpret_cast<Float8Scale*>(take(sizeof(Float8Scale)));
  Float8Codes codes{.type = type};
  if (layouts.as_stored) codes.as_stored = reinterpret_cast<uint8_t*>(take(x.count()));
  if (layouts.transposed)
    codes.transposed =
        reinterpret_cast<uint8_t*>(take(float8_rows(x.shape.rows()) * x.shape.columns()));
  return {codes, scale};
}

}  // namespace

Float8Matrix make_float8(CudaQueue& queue, std::byte*& at, const ConstTensor& x, Float8 type,
                         Float8Layouts layouts) {
  const auto [codes, scale] = place_float8(at, x, type, layouts);
  const float* const largest = largest_of(queue, x, scale);
  check_cuda(launch_float8(queue.stream(), x, largest, codes, &scale->factor), "launch float8");
  return Float8Buffers{codes, scale}.matrix();
}

Float8Matrix weight_codes(CudaQueue& queue, std::byte*& at, const ConstTensor& weight,
                          Float8Layouts layouts, const KeptCodes& kept) {
  if (kept.memory.memory.data == nullptr)
    return make_float8(queue, at, weight, Float8::kE4M3, layouts);
  constexpr Float8Layouts kBoth{.as_stored = true, .transposed = true};
  GXP_ASSERT(kept.memory.memory.bytes >= float8_bytes(weight, kBoth));
  std::byte* place = kept.memory.memory.data;
  if (kept.makes) return make_float8(queue, place, weight, Float8::kE4M3, kBoth);
  return place_float8(place, weight, Float8::kE4M3, kBoth).matrix();
}

}  // namespace gxp
