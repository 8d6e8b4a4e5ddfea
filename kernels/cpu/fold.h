// Folding and scaling of buffers: kernels/reduce_op.h for one instruction set.
#pragma once

#include <cstddef>

#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"

namespace gxp {

struct FoldKernels {
  void (*fold)(std::byte* into, const std::byte* from, size_t count, DType dtype, ReduceOp op);
  // f64, f32, f16 and bf16 only.
  void (*scale)(std::byte* data, size_t count, DType dtype, double factor);
};

}  // namespace gxp
