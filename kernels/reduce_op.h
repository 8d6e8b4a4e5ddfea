// Element-wise folding of one buffer into another: what a reduction does at each hop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/base/dtype.h"
#include "lib/device/memory.h"

namespace gxp {

// kAvg folds as kSum; the collective multiplies by 1 / world_size at the end (scale()).
enum class ReduceOp : uint8_t { kSum, kProd, kMin, kMax, kAvg };

std::string_view to_string(ReduceOp op);
std::optional<ReduceOp> parse_reduce_op(std::string_view name);

// into[i] = into[i] op from[i]. Equal sizes, host memory, no overlap. f64 f32 f16 bf16 (and the
// integer types, where sums and products wrap). Half types are folded in f32 and rounded once per
// fold. min and max return NaN if either is NaN. Runs on the calling thread, with the CPU's widest
// vectors.
void fold(Memory into, ConstMemory from, DType dtype, ReduceOp op);

// data[i] = data[i] * factor, for kAvg. Integer types are divided by round(1 / factor), towards
// zero.
void scale(Memory data, DType dtype, double factor);

}  // namespace gxp
