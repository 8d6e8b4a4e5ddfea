#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "kernels/cuda/cuda_folds.h"
#include "kernels/cuda/half.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/math/fold.h"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_stream.h"

namespace gxp {
namespace {

constexpr unsigned kThreads = 512;
constexpr size_t kAlignment = 16;
// What a thread reads at once: of bytes, fewer, since each of them is computed in a register.
constexpr size_t vector_bytes(size_t element_bytes) { return element_bytes == 1 ? 8 : 16; }
constexpr size_t kMost = DeviceFolds::kMostSources;

// All that a launch is told.
struct FoldTable {
  const std::byte* sources[kMost];
  std::byte* targets[kMost];
  unsigned target_count;
  unsigned leaves;  // of the tree (reduce_op.h): a power of two
  unsigned pairs;   // so many of them, the first, are folds of two sources
  size_t count;     // elements
  size_t vectors;   // so many groups of elements come first; 0 where some address is not aligned
  bool scales;
  float factor;
  double wide_factor;
  IntegerScale integer_factor;
};

// What an element is computed as, and how it is stored: every NaN as the same one.
template <class T>
struct Element {
  __device__ static T decode(T x) { return x; }
  __device__ static T encode(T x) {
    if constexpr (std::is_floating_point_v<T>)
      return x != x ? std::numeric_limits<T>::quiet_NaN() : x;
    else
      return x;
  }
};
template <>
struct Element<Bf16> {
  __device__ static float decode(Bf16 x) { return to_float(x); }
  __device__ static Bf16 encode(float x) { return x != x ? Bf16{0x7fc0} : round_to<Bf16>(x); }
};
template <>
struct Element<Fp16> {
  __device__ static float decode(Fp16 x) { return to_float(x); }
  __device__ static Fp16 encode(float x) { return x != x ? Fp16{0x7e00} : round_to<Fp16>(x); }
};

// Sums and products of integers wrap.
template <class Op>
struct Wrapping {
  template <class V>
  __device__ V operator()(V a, V b) const {
    using Unsigned = std::make_unsigned_t<V>;
    return V(Op()(Unsigned(a), Unsigned(b)));
  }
};
template <class T, class Op>
using Arithmetic = std::conditional_t<std::is_integral_v<T>, Wrapping<Op>, Op>;

template <class T, int N>
struct alignas(N * sizeof(T)) Elements {
  T at[N];
};

template <class Op, class T, int N>
__device__ __forceinline__ Elements<T, N> fold(const Elements<T, N>& a, const Elements<T, N>& b) {
  using E = Element<T>;
  Elements<T, N> folded;
#pragma unroll
  for (int i = 0; i < N; ++i)
    folded.at[i] = E::encode(Op()(E::decode(a.at[i]), E::decode(b.at[i])));
  return folded;
}

template <class T>
__device__ __forceinline__ T scaled(T x, const FoldTable& table) {
  using E = Element<T>;
  if constexpr (std::is_integral_v<T>)
    return table.integer_factor(x);
  else if constexpr (std::is_same_v<T, double>)
    return E::encode(x * table.wide_factor);
  else
    return E::encode(E::decode(x) * table.factor);
}

template <class T, int N>
__device__ __forceinline__ Elements<T, N> read(const std::byte* source, size_t group) {
  return reinterpret_cast<const Elements<T, N>*>(source)[group];
}

template <class T, class Op, int N>
__device__ __forceinline__ Elements<T, N> leaf(const FoldTable& table, unsigned i, size_t group) {
  if (i >= table.pairs) return read<T, N>(table.sources[i + table.pairs], group);
  return fold<Op>(read<T, N>(table.sources[2 * i], group),
                  read<T, N>(table.sources[2 * i + 1], group));
}

// The tree over all leaves, kLeaves of them at a time. What is folded waits in `held` for its
// neighbour of equal size, which comes later: the carries of a binary counter.
template <class T, class Op, int kLeaves, int N>
__device__ __forceinline__ Elements<T, N> fold_tree(const FoldTable& table, size_t group) {
  constexpr int kLevels = 5;  // kMost leaves, two at a time
  static_assert(kMost / 2 <= 1 << kLevels);
  Elements<T, N> held[kLevels];
  Elements<T, N> folded;
#pragma unroll 1
  for (unsigned turn = 0; turn * kLeaves < table.leaves; ++turn) {
    Elements<T, N> batch[kLeaves];
#pragma unroll
    for (int i = 0; i < kLeaves; ++i) batch[i] = leaf<T, Op, N>(table, turn * kLeaves + i, group);
#pragma unroll
    for (int width = 1; width < kLeaves; width *= 2) {
#pragma unroll
      for (int i = 0; i < kLeaves; i += 2 * width) batch[i] = fold<Op>(batch[i], batch[i + width]);
    }
    folded = batch[0];
    bool carries = true;
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
      const bool is_held = (turn >> level & 1) != 0;
      if (carries && is_held) folded = fold<Op>(held[level], folded);
      if (carries && !is_held) held[level] = folded;
      carries = carries && is_held;
    }
  }
  return folded;
}

template <class T, class Op, int kLeaves, int N>
__device__ __forceinline__ void fold_group(const FoldTable& table, size_t group) {
  Elements<T, N> folded = fold_tree<T, Op, kLeaves, N>(table, group);
  if constexpr (std::is_same_v<Op, Arithmetic<T, FoldSum>>) {
    if (table.scales) {
#pragma unroll
      for (int i = 0; i < N; ++i) folded.at[i] = scaled(folded.at[i], table);
    }
  }
#pragma unroll 1
  for (unsigned i = 0; i < table.target_count; ++i)
    reinterpret_cast<Elements<T, N>*>(table.targets[i])[group] = folded;
}

// One block of a multiprocessor, for there are no more than kBlocks: ptxas would take 32 registers.
template <class T, class Op, int kLeaves>
__global__ void __launch_bounds__(kThreads, 1)
    fold_kernel(const __grid_constant__ FoldTable table) {
  constexpr int kPerVector = vector_bytes(sizeof(T)) / sizeof(T);
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  const size_t first = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (size_t i = first; i < table.vectors; i += stride)
    fold_group<T, Op, kLeaves, kPerVector>(table, i);
  for (size_t i = table.vectors * kPerVector + first; i < table.count; i += stride)
    fold_group<T, Op, kLeaves, 1>(table, i);
}

template <class T, class Op, int kLeaves>
cudaError_t launch(cudaStream_t stream, const FoldTable& table, unsigned most_blocks) {
  const size_t threads = table.vectors > 0 ? table.vectors : table.count;
  const size_t blocks = std::min<size_t>((threads + kThreads - 1) / kThreads, most_blocks);
  const auto config = config_of(stream, dim3(unsigned(blocks)), kThreads);
  return cudaLaunchKernelEx(&config, fold_kernel<T, Op, kLeaves>, table);
}

// Sums of the types that gradients have load four leaves at once. One source alone is folded with
// nothing, whatever the operation.
template <class T, class Op>
cudaError_t launch_tree(cudaStream_t stream, const FoldTable& table, unsigned most_blocks) {
  constexpr bool kOften =
      std::is_same_v<Op, FoldSum> &&
      (std::is_same_v<T, float> || std::is_same_v<T, Bf16> || std::is_same_v<T, Fp16>);
  if constexpr (std::is_same_v<Op, Arithmetic<T, FoldSum>>) {
    if (table.leaves == 1) return launch<T, Op, 1>(stream, table, most_blocks);
  }
  if constexpr (kOften) {
    if (table.leaves >= 4) return launch<T, Op, 4>(stream, table, most_blocks);
  }
  return launch<T, Op, 2>(stream, table, most_blocks);
}

template <class T>
cudaError_t launch_arithmetic(cudaStream_t stream, ReduceOp op, const FoldTable& table,
                              unsigned most_blocks) {
  switch (op) {
    case ReduceOp::kProd:
      return launch_tree<T, Arithmetic<T, FoldProduct>>(stream, table, most_blocks);
    case ReduceOp::kMin:
      return launch_tree<T, FoldMin>(stream, table, most_blocks);
    case ReduceOp::kMax:
      return launch_tree<T, FoldMax>(stream, table, most_blocks);
    default:
      return launch_tree<T, Arithmetic<T, FoldSum>>(stream, table, most_blocks);
  }
}

template <class T>
cudaError_t launch_integer(cudaStream_t stream, ReduceOp op, const FoldTable& table,
                           unsigned most_blocks) {
  switch (op) {
    case ReduceOp::kBitAnd:
      return launch_tree<T, FoldAnd>(stream, table, most_blocks);
    case ReduceOp::kBitOr:
      return launch_tree<T, FoldOr>(stream, table, most_blocks);
    case ReduceOp::kBitXor:
      return launch_tree<T, FoldXor>(stream, table, most_blocks);
    case ReduceOp::kLogicalAnd:
      return launch_tree<T, FoldLogical<FoldAnd>>(stream, table, most_blocks);
    case ReduceOp::kLogicalOr:
      return launch_tree<T, FoldLogical<FoldOr>>(stream, table, most_blocks);
    case ReduceOp::kLogicalXor:
      return launch_tree<T, FoldLogical<FoldXor>>(stream, table, most_blocks);
    default:
      return launch_arithmetic<T>(stream, op, table, most_blocks);
  }
}

cudaError_t launch_typed(cudaStream_t stream, DType dtype, ReduceOp op, const FoldTable& table,
                         unsigned most_blocks) {
  switch (dtype) {
    case DType::kF64:
      return launch_arithmetic<double>(stream, op, table, most_blocks);
    case DType::kF32:
      return launch_arithmetic<float>(stream, op, table, most_blocks);
    case DType::kF16:
      return launch_arithmetic<Fp16>(stream, op, table, most_blocks);
    case DType::kBF16:
      return launch_arithmetic<Bf16>(stream, op, table, most_blocks);
    case DType::kI64:
      return launch_integer<int64_t>(stream, op, table, most_blocks);
    case DType::kI32:
      return launch_integer<int32_t>(stream, op, table, most_blocks);
    case DType::kI8:
      return launch_integer<int8_t>(stream, op, table, most_blocks);
    case DType::kU8:
      return launch_integer<uint8_t>(stream, op, table, most_blocks);
  }
  return cudaErrorInvalidValue;
}

bool is_sum(ReduceOp op) {
  return op == ReduceOp::kSum || op == ReduceOp::kAvg || op == ReduceOp::kPreMulSum;
}

class CudaFolds final : public DeviceFolds {
 public:
  void fold_all(Stream& stream, std::span<std::byte* const> targets,
                std::span<const std::byte* const> sources, size_t bytes, DType dtype, ReduceOp op,
                const FoldOptions& options) override {
    const std::optional<double>& factor = options.factor;
    GXP_ASSERT(!sources.empty() && sources.size() <= kMost && targets.size() <= kMost);
    GXP_ASSERT(bytes % size_of(dtype) == 0 && supports(op, dtype) && (!factor || is_sum(op)));
    if (bytes == 0 || targets.empty()) return;
    const size_t leaves = std::bit_floor(sources.size());
    FoldTable table{.sources = {},
                    .targets = {},
                    .target_count = unsigned(targets.size()),
                    .leaves = unsigned(leaves),
                    .pairs = unsigned(sources.size() - leaves),
                    .count = bytes / size_of(dtype),
                    .vectors = bytes / vector_bytes(size_of(dtype)),
                    .scales = factor.has_value(),
                    .factor = float(factor.value_or(1)),
                    .wide_factor = factor.value_or(1),
                    .integer_factor = IntegerScale(factor.value_or(1))};
    std::ranges::copy(sources, table.sources);
    std::ranges::copy(targets, table.targets);
    const auto is_aligned = [](const std::byte* at) { return uintptr_t(at) % kAlignment == 0; };
    if (!std::ranges::all_of(sources, is_aligned) || !std::ranges::all_of(targets, is_aligned))
      table.vectors = 0;
    const ReduceOp folded = leaves == 1 ? ReduceOp::kSum : op;
    const unsigned most_blocks = options.blocks == 0 ? kBlocks : options.blocks;
    check_cuda(launch_typed(native_stream(stream), dtype, folded, table, most_blocks),
               "launch a reduction");
  }

  void barrier(Stream& stream, const DeviceBarrier& barrier) override {
    queue_barrier(stream, barrier);
  }
};

}  // namespace

std::unique_ptr<DeviceFolds> make_cuda_folds() { return std::make_unique<CudaFolds>(); }

}  // namespace gxp
