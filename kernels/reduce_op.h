// Element-wise folding of one buffer into another, at each hop of a reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lib/base/dtype.h"
#include "lib/base/error.h"
#include "lib/device/memory.h"

namespace gxp {

// kAvg and kPreMulSum fold as kSum: the collective multiplies by 1 / world_size at the end, or each
// rank's input by its factor at the start (scale()). The bitwise and logical operations are for
// integers; a logical one takes any non-zero element as true and gives 0 or 1.
enum class ReduceOp : uint8_t {
  kSum,
  kProd,
  kMin,
  kMax,
  kAvg,
  kPreMulSum,
  kBitAnd,
  kBitOr,
  kBitXor,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
};

// "sum" "prod" "min" "max" "avg" "mulsum" "band" "bor" "bxor" "land" "lor" "lxor": the names of
// nccl-tests and MPI.
std::string_view to_string(ReduceOp op);
std::optional<ReduceOp> parse_reduce_op(std::string_view name);
std::span<const ReduceOp> reduce_ops();

// Bitwise and logical operations have no meaning for floating-point types; all else is supported.
Support supports(ReduceOp op, DType dtype);

// into[i] = a[i] op b[i]. Equal sizes, host memory; `into` may be `a` or `b`, but not overlap them
// otherwise. f64 f32 f16 bf16 and the integer types, where sums and products wrap. Half types are
// folded in f32 and rounded once per fold. min and max return NaN if either is NaN. Commutative in
// bits: NaN results are canonical, min(-0, +0) is -0, max is +0. Runs on the calling thread, with
// the CPU's widest vectors.
void fold(Memory into, ConstMemory a, ConstMemory b, DType dtype, ReduceOp op);

// into[i] = into[i] op from[i].
inline void fold(Memory into, ConstMemory from, DType dtype, ReduceOp op) {
  fold(into, into, from, dtype, op);
}

// Every target becomes the reduction of all sources, n >= 1 of them, in one pass over memory: a
// tile of each source is folded in the cache and stored to each target. A target may be one of the
// sources. The order is that of the layout-invariant collectives, whose bits it has: with s the
// largest power of two not above n, source 2i takes 2i + 1 for i < n - s; of the s that remain,
// neighbours are folded, then neighbouring pairs, and so on. `bytes` of each, whole elements.
void fold_all(std::span<std::byte* const> targets, std::span<const std::byte* const> sources,
              size_t bytes, DType dtype, ReduceOp op);

// data[i] = data[i] * factor, for kAvg and kPreMulSum. Integer types: for a factor below 1 divided
// by round(1 / factor), towards zero; else multiplied by round(factor), wrapping.
void scale(Memory data, DType dtype, double factor);

}  // namespace gxp
