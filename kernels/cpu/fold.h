// Folding and scaling of buffers: kernels/reduce_op.h for one instruction set.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"

namespace gxp {

// Bytes offset .. offset + bytes of each target, whole elements, are to become the fold of as many
// bytes of the operands. A target may be an operand, but not overlap one otherwise.
struct FoldTask {
  std::span<std::byte* const> targets;
  size_t offset = 0;
  size_t bytes = 0;
  bool prefetch = false;  // the operands lie beyond this core's cache
};

// The first byte of each operand, of which a kernel has a fixed number.
using FoldKernel = void (*)(const FoldTask& task, const std::byte* const* operands);

struct FoldKernels {
  // Of two operands a, b: a op b. The type supports the operation.
  FoldKernel (*pair)(DType dtype, ReduceOp op);
  // Of four operands q: (q[0] op q[1]) op (q[2] op q[3]). Null but for sums of f32, f16 and bf16.
  FoldKernel (*quad)(DType dtype, ReduceOp op);
  // f64, f32, f16 and bf16 only.
  void (*scale)(std::byte* data, size_t bytes, DType dtype, double factor);
};

}  // namespace gxp
