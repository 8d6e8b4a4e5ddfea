#include "kernels/reduce_op.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/math/fold.h"
#include "lib/base/host_caches.h"

namespace gxp {
namespace {

constexpr std::array kOps = {ReduceOp::kSum,        ReduceOp::kProd,      ReduceOp::kMin,
                             ReduceOp::kMax,        ReduceOp::kAvg,       ReduceOp::kPreMulSum,
                             ReduceOp::kBitAnd,     ReduceOp::kBitOr,     ReduceOp::kBitXor,
                             ReduceOp::kLogicalAnd, ReduceOp::kLogicalOr, ReduceOp::kLogicalXor};
constexpr std::array<std::string_view, kOps.size()> kNames = {
    "sum", "prod", "min", "max", "avg", "mulsum", "band", "bor", "bxor", "land", "lor", "lxor"};

const FoldKernels& widest() {
  static const FoldKernels& kernels = cpu_kernels(choose_isa()).fold;
  return kernels;
}

bool is_supported(ReduceOp op, DType dtype) {
  return op < ReduceOp::kBitAnd || (dtype != DType::kF64 && dtype != DType::kF32 &&
                                    dtype != DType::kF16 && dtype != DType::kBF16);
}

// Elements are powers of two; a division would be a sixth of the time of a small fold.
bool is_whole(size_t bytes, DType dtype) { return (bytes & (size_of(dtype) - 1)) == 0; }

// So large buffers are taken to lie beyond this core's second level.
bool is_far(size_t bytes) {
  static const size_t least = 2 * own_caches().l2_bytes;
  return bytes >= least;
}

// Eight sources' tiles and two of sums are then 20 KiB of a 32 or 48 KiB first level.
constexpr size_t kTileBytes = 2048;

// The tree of fold_all: its leaves are the sources, the first of them in pairs where their number
// is no power of two.
class Tree {
 public:
  Tree(std::span<const std::byte* const> sources, DType dtype, ReduceOp op, bool far)
      : sources_(sources),
        leaves_(std::bit_floor(sources.size())),
        far_(far),
        pair_(widest().pair(dtype, op)),
        quad_(sources.size() < 4 ? nullptr : widest().quad(dtype, op)) {}

  // Whether nothing needs to be kept between: then a tile may have any size.
  [[nodiscard]] bool is_flat() const {
    return sources_.size() == 2 || (sources_.size() == 4 && quad_ != nullptr);
  }
  struct Leaves {
    size_t first, count;
  };
  [[nodiscard]] Leaves leaves() const { return {0, leaves_}; }
  // Folds these leaves, from byte `at` of the sources on: at most kTileBytes unless is_flat(). By
  // reference: to copy what was just stored costs as much as a small fold.
  void fold(const Leaves& leaves, FoldTask& task, size_t at) const {
    const auto [first, count] = leaves;
    if (count == 4 && quad_ != nullptr) return fold_four(leaves, task, at);
    Tile tiles[2];
    const std::byte* const operands[] = {
        operand({first, count / 2}, tiles[0], at, task.bytes),
        operand({first + count / 2, count / 2}, tiles[1], at, task.bytes)};
    task.prefetch = far_ && count == 2;
    pair_(task, operands);
  }

 private:
  struct alignas(64) Tile {
    std::byte bytes[kTileBytes];
  };

  // Where the fold of the leaves is to be found: a source, or `tile`.
  const std::byte* operand(const Leaves& leaves, Tile& tile, size_t at, size_t bytes) const {
    const size_t pairs = sources_.size() - leaves_;
    const size_t i = leaves.first;
    if (leaves.count == 1 && i >= pairs) return sources_[i + pairs] + at;
    std::byte* const target[] = {tile.bytes};
    FoldTask task = {target, 0, bytes, far_};
    if (leaves.count == 1) {
      const std::byte* const pair[] = {sources_[2 * i] + at, sources_[2 * i + 1] + at};
      pair_(task, pair);
    } else {
      fold(leaves, task, at);
    }
    return tile.bytes;
  }

  void fold_four(const Leaves& leaves, FoldTask& task, size_t at) const {
    Tile tiles[4];
    const std::byte* operands[4];
    for (size_t i = 0; i < 4; ++i)
      operands[i] = operand({leaves.first + i, 1}, tiles[i], at, task.bytes);
    task.prefetch = far_;
    quad_(task, operands);
  }

  std::span<const std::byte* const> sources_;
  size_t leaves_;
  bool far_;
  FoldKernel pair_;
  FoldKernel quad_;
};

void copy_all(std::span<std::byte* const> targets, const std::byte* source, size_t bytes) {
  for (std::byte* target : targets) {
    if (target != source && bytes > 0) std::memcpy(target, source, bytes);
  }
}

template <class T>
void scale_integers(Memory data, double factor) {
  GXP_ASSERT(std::abs(factor) < 0x1p63);
  const IntegerScale scaled(factor);
  for (size_t at = 0; at < data.bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, data.data + at, sizeof value);
    value = scaled(value);
    std::memcpy(data.data + at, &value, sizeof value);
  }
}

}  // namespace

std::string_view to_string(ReduceOp op) { return kNames[static_cast<size_t>(op)]; }

std::optional<ReduceOp> parse_reduce_op(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return kOps[i];
  }
  return std::nullopt;
}

std::span<const ReduceOp> reduce_ops() { return kOps; }

Support supports(ReduceOp op, DType dtype) {
  if (is_supported(op, dtype)) return {};
  return {false, fmt::format("{} is not defined for {}; use an integer type", to_string(op),
                             to_string(dtype))};
}

void fold(Memory into, ConstMemory a, ConstMemory b, DType dtype, ReduceOp op) {
  GXP_ASSERT(into.space == MemorySpace::kHost && a.space == MemorySpace::kHost &&
             b.space == MemorySpace::kHost);
  GXP_ASSERT(into.bytes == a.bytes && into.bytes == b.bytes && is_whole(into.bytes, dtype));
  GXP_ASSERT(is_supported(op, dtype));
  std::byte* const target[] = {into.data};
  const std::byte* const operands[] = {a.data, b.data};
  widest().pair(dtype, op)({target, 0, into.bytes, is_far(into.bytes)}, operands);
}

void fold_all(std::span<std::byte* const> targets, std::span<const std::byte* const> sources,
              size_t bytes, DType dtype, ReduceOp op) {
  GXP_ASSERT(!sources.empty() && is_whole(bytes, dtype) && is_supported(op, dtype));
  if (sources.size() == 1) return copy_all(targets, sources[0], bytes);
  const Tree tree(sources, dtype, op, is_far(bytes));
  const size_t tile = tree.is_flat() ? bytes : kTileBytes;
  for (size_t offset = 0; offset < bytes; offset += tile) {
    FoldTask task = {targets, offset, std::min(tile, bytes - offset)};
    tree.fold(tree.leaves(), task, offset);
  }
}

void scale(Memory data, DType dtype, double factor) {
  GXP_ASSERT(data.space == MemorySpace::kHost && is_whole(data.bytes, dtype));
  switch (dtype) {
    case DType::kI64:
      return scale_integers<int64_t>(data, factor);
    case DType::kI32:
      return scale_integers<int32_t>(data, factor);
    case DType::kI8:
      return scale_integers<int8_t>(data, factor);
    case DType::kU8:
      return scale_integers<uint8_t>(data, factor);
    default:
      return widest().scale(data.data, data.bytes, dtype, factor);
  }
}

}  // namespace gxp
