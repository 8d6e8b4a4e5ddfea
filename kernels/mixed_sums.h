// Copies and sums between buffers of different floating-point types, on the calling thread: for
// lanes beside the one that owns the Ops. Each of f32, bf16 and f16; computed in f32, rounded once.
#pragma once

#include "lib/tensor/tensor.h"

namespace gxp {

// to = from, as many elements; they do not overlap. Host memory.
void copy_rounded(const Tensor& to, const ConstTensor& from);

// to = to + from.
void add_rounded(const Tensor& to, const ConstTensor& from);

}  // namespace gxp
