// Halves are encoded element by element; of integers a warp takes a block, and lane i of it the
// elements i, i + 32, i + 64 and i + 96: of 8 bits they are its word, of 4 bits every other of one.
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/quantize_launch.h"
#include "kernels/cuda/reduce.cuh"

namespace gxp {
namespace {

constexpr int32_t kMagnitude = 0x7fffffff;
constexpr int32_t kInfinityBits = 0x7f800000;
// |x| < 2^22 plus this is rounded to an integer, which the low bits then hold in two's complement.
constexpr float kToInteger = 0x1.8p23f;

__device__ __forceinline__ bool is_nan(float x) {
  return (bits_as<int32_t>(x) & kMagnitude) > kInfinityBits;
}
__device__ __forceinline__ float canonical(float x) {
  return is_nan(x) ? bits_as<float>(0x7fc00000) : x;
}
__device__ __forceinline__ float finite_or_zero(float x) {
  return (bits_as<int32_t>(x) & kMagnitude) < kInfinityBits ? x : 0.0f;
}

// The NaN that a half type encodes every NaN as.
template <class T>
constexpr uint16_t kNan = 0x7fc0;
template <>
constexpr uint16_t kNan<Fp16> = 0x7e00;

// What is done with decoded elements.
struct Put {
  template <int N>
  __device__ __forceinline__ static void to(float* out, Floats<N> decoded) {
    for (float& each : decoded.at) each = canonical(each);
    store(out, decoded);
  }
};
struct AddTo {
  template <int N>
  __device__ __forceinline__ static void to(float* out, Floats<N> decoded) {
    Floats<N> sum = load<N>(out);
    for (int j = 0; j < N; ++j) sum.at[j] = canonical(sum.at[j] + decoded.at[j]);
    store(out, sum);
  }
};

template <class T>
struct EncodeHalves {
  T* out;
  const float* x;
  float* residual;  // or null
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> value = load<N>(x + i);
    if (residual != nullptr) {
      const Floats<N> kept = load<N>(residual + i);
      for (int j = 0; j < N; ++j) value.at[j] += kept.at[j];
    }
    Group<N, T> group;
    for (int j = 0; j < N; ++j) {
      const float each = value.at[j];
      group.at[j] = is_nan(each) ? T{kNan<T>} : round_to<T>(each);
      value.at[j] = finite_or_zero(each - to_float(group.at[j]));
    }
    store(out + i, group);
    if (residual != nullptr) store(residual + i, value);
  }
};

template <class T, class Combine>
struct DecodeHalves {
  float* out;
  const T* encoded;
  template <int N>
  __device__ void run(size_t i) const {
    Combine::to(out + i, load<N>(encoded + i));
  }
};

// A block of integers of `width` bits, and what a lane has of it.
template <int width>
struct Block {
  static constexpr int kGroups = 32 / width;
  static constexpr int kWords = int(kQuantizeBlock) / kGroups;
  static constexpr size_t kPairs = 1 + 2 * kWords;  // of bytes
  static constexpr uint32_t kMask = (1u << width) - 1;
  static constexpr float kLimit = float((1 << (width - 1)) - 1);
  // Where element lane + 32 * k is in the lane's word.
  __device__ static int shift(int lane, int k) { return (k * 32 + lane) / kWords * width; }

  __device__ static uint16_t scale_for(int32_t largest) {
    const float exact = bits_as<float>(largest) / kLimit;
    const float scale = exact < 0x1p-126f ? 0x1p-126f : exact;
    return uint16_t((bits_as<uint32_t>(scale) + 0xffffu) >> 16);
  }
};
constexpr int kOfLane = int(kQuantizeBlock) / kWarpLanes;

struct Warps {
  __device__ Warps() = default;
  size_t first = (size_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarpLanes;
  size_t count = size_t{gridDim.x} * blockDim.x / kWarpLanes;
  int lane = int(threadIdx.x) % kWarpLanes;
};

// Products are rounded before they are added to: the CPU's are, where that could be seen.
template <int width>
__device__ void encode_block(size_t begin, size_t count, uint16_t* out, const float* x,
                             float* residual) {
  using B = Block<width>;
  const int lane = int(threadIdx.x) % kWarpLanes;
  float value[kOfLane];
  int32_t most = 0;
  for (int k = 0; k < kOfLane; ++k) {
    const size_t i = begin + size_t(k) * kWarpLanes + lane;
    value[k] = i >= count ? 0.0f : residual == nullptr ? x[i] : x[i] + residual[i];
    most = Max()(most, bits_as<int32_t>(value[k]) & kMagnitude);
  }
  most = reduce_warp(most, Max());
  const bool is_finite = most < kInfinityBits;
  const uint16_t scale_bits = is_finite ? B::scale_for(most) : kNan<Bf16>;
  const float scale = to_float(Bf16{scale_bits});
  const float inverse = 1.0f / scale;
  uint32_t packed = 0;
  for (int k = 0; k < kOfLane; ++k) {
    const size_t i = begin + size_t(k) * kWarpLanes + lane;
    const float integer = __fmul_rn(value[k], inverse) + kToInteger;
    if (is_finite) packed |= (bits_as<uint32_t>(integer) & B::kMask) << B::shift(lane, k);
    if (residual == nullptr || i >= count) continue;
    const float lost = value[k] - __fmul_rn(integer - kToInteger, scale);
    residual[i] = is_finite ? finite_or_zero(lost) : 0.0f;
  }
  if (B::kWords < kWarpLanes) packed |= __shfl_xor_sync(kAllLanes, packed, B::kWords);
  if (lane == 0) out[0] = scale_bits;
  if (lane >= B::kWords) return;
  out[1 + 2 * lane] = uint16_t(packed);
  out[2 + 2 * lane] = uint16_t(packed >> 16);
}

template <int width>
__global__ void encode_blocks(size_t count, uint16_t* out, const float* x, float* residual) {
  const Warps warps;
  for (size_t block = warps.first; block * kQuantizeBlock < count; block += warps.count)
    encode_block<width>(block * kQuantizeBlock, count, out + block * Block<width>::kPairs, x,
                        residual);
}

template <int width, class Combine>
__global__ void decode_blocks(size_t count, float* out, const uint16_t* encoded) {
  using B = Block<width>;
  const Warps warps;
  for (size_t block = warps.first; block * kQuantizeBlock < count; block += warps.count) {
    const uint16_t* const from = encoded + block * B::kPairs;
    const uint16_t* const word = from + 1 + 2 * (warps.lane % B::kWords);
    const uint32_t packed = word[0] | uint32_t{word[1]} << 16;
    const float scale = to_float(Bf16{from[0]});
    for (int k = 0; k < kOfLane; ++k) {
      const size_t i = block * kQuantizeBlock + size_t(k) * kWarpLanes + warps.lane;
      if (i >= count) break;
      const uint32_t top = packed << (32 - width - B::shift(warps.lane, k));
      Combine::to(out + i, Floats<1>{__fmul_rn(float(int32_t(top) >> (32 - width)), scale)});
    }
  }
}

template <class Kernel, class... Args>
cudaError_t launch_blocks(const GpuStream& stream, size_t count, Kernel* kernel, Args... args) {
  if (count == 0) return cudaSuccess;
  constexpr unsigned kThreads = 256;
  const size_t threads = (count + kQuantizeBlock - 1) / kQuantizeBlock * kWarpLanes;
  const auto config = config_of(stream, blocks_for(stream.gpu, threads, kThreads), kThreads);
  return cudaLaunchKernelEx(&config, kernel, count, args...);
}

template <class T>
cudaError_t encode_halves(const GpuStream& stream, size_t count, uint16_t* out, const float* x,
                          float* residual) {
  const EncodeHalves<T> body{reinterpret_cast<T*>(out), x, residual};
  return for_each(stream, count, lie_in_fours(body.out, x, residual), body);
}

template <class T, class Combine>
cudaError_t decode_halves(const GpuStream& stream, size_t count, float* out,
                          const uint16_t* encoded) {
  const DecodeHalves<T, Combine> body{out, reinterpret_cast<const T*>(encoded)};
  return for_each(stream, count, lie_in_fours(out, body.encoded), body);
}

template <class Combine>
cudaError_t decode_with(const GpuStream& stream, const CudaWire& wire, float* out,
                        const std::byte* encoded) {
  if (reinterpret_cast<uintptr_t>(encoded) % 2 != 0) return cudaErrorInvalidValue;
  const auto* const from = reinterpret_cast<const uint16_t*>(encoded);
  const size_t count = wire.count;
  switch (wire.format) {
    case WireFormat::kBF16:
      return decode_halves<Bf16, Combine>(stream, count, out, from);
    case WireFormat::kF16:
      return decode_halves<Fp16, Combine>(stream, count, out, from);
    case WireFormat::kInt8:
      return launch_blocks(stream, count, decode_blocks<8, Combine>, out, from);
    case WireFormat::kInt4:
      return launch_blocks(stream, count, decode_blocks<4, Combine>, out, from);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_encode(cudaStream_t stream, const CudaWire& wire, std::byte* out, const float* x,
                          float* residual) {
  if (reinterpret_cast<uintptr_t>(out) % 2 != 0) return cudaErrorInvalidValue;
  auto* const to = reinterpret_cast<uint16_t*>(out);
  const GpuStream on{stream, size_of_gpu()};
  switch (wire.format) {
    case WireFormat::kBF16:
      return encode_halves<Bf16>(on, wire.count, to, x, residual);
    case WireFormat::kF16:
      return encode_halves<Fp16>(on, wire.count, to, x, residual);
    case WireFormat::kInt8:
      return launch_blocks(on, wire.count, encode_blocks<8>, to, x, residual);
    case WireFormat::kInt4:
      return launch_blocks(on, wire.count, encode_blocks<4>, to, x, residual);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_decode(cudaStream_t stream, const CudaWire& wire, float* out,
                          const std::byte* encoded) {
  return decode_with<Put>({stream, size_of_gpu()}, wire, out, encoded);
}

cudaError_t launch_decode_and_add(cudaStream_t stream, const CudaWire& wire, float* out,
                                  const std::byte* encoded) {
  return decode_with<AddTo>({stream, size_of_gpu()}, wire, out, encoded);
}

}  // namespace gxp
