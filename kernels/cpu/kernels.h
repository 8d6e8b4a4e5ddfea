// All kernels of the CPU backend but the matrix product (kernels/cpu/gemm/gemm.h), for one
// instruction set: kernels_avx512.cc, kernels_avx2.cc and kernels_baseline.cc compile this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/float8.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/rows.h"
#include "kernels/quantize.h"
#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"

namespace gxp {

// On arrays of `count` floats; `settings` points to an object of the operation's struct.
using ElementwiseKernel = void (*)(float* const* arrays, size_t count, const void* settings);

// Kernels that see an array element by element, and sums over arrays. Callers are on the CPU
// backend's threads, each with its own range. Formulas: kernels/ops.h. An element's bits do not
// depend on the range it is computed in.
struct ElementwiseKernels {
  const ElementwiseKernel* apply;  // one for each type of ElementwiseMath, in its order
  void (*add_squares)(double* sums, const float* x, size_t count);  // sums[i] += x[i]^2
  void (*scale)(float* out, const float* x, const float* by, float factor, size_t count);
  // In double over 16 interleaved sums: the same bits on every instruction set.
  double (*sum)(const float* x, size_t count);
  double (*sum_of_squares)(const float* x, size_t count);
};

// Softmax, loss and gradient of one row of logits. Formulas: kernels/ops.h. `target` is below `columns`, or negative: loss 0, gradient 0.
struct ClassifierKernels {
  // Returns the loss and replaces the logits with (softmax - onehot(target)) * scale.
  float (*loss_and_gradient)(float* logits, size_t columns, int32_t target, float scale);
  float (*loss)(const float* logits, size_t columns, int32_t target);
};

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

// Folding and scaling of buffers (kernels/reduce_op.h).
struct FoldKernels {
  // Of two operands a, b: a op b. The type supports the operation.
  FoldKernel (*pair)(DType dtype, ReduceOp op);
  // Of four operands q: (q[0] op q[1]) op (q[2] op q[3]). Null but for sums of f32, f16 and bf16.
  FoldKernel (*quad)(DType dtype, ReduceOp op);
  // f64, f32, f16 and bf16 only.
  void (*scale)(std::byte* data, size_t bytes, DType dtype, double factor);
};

// Encoding f32 for slow links (kernels/quantize.h).
struct QuantizeKernels {
  void (*encode)(std::byte* out, const float* x, size_t count, WireFormat format, float* residual);
  void (*decode)(float* out, const std::byte* encoded, size_t count, WireFormat format);
  void (*decode_and_add)(float* out, const std::byte* encoded, size_t count, WireFormat format);
};

struct CpuKernels {
  ElementwiseKernels elementwise;
  RowKernels rows;
  ClassifierKernels classifier;
  AttentionKernels attention;
  FoldKernels fold;
  QuantizeKernels quantize;
  ConvertKernels convert;
  Float8Kernels float8;
};

// `isa` is one that this CPU has.
const CpuKernels& cpu_kernels(Isa isa);

namespace avx512 {
extern const CpuKernels kCpuKernels;
}
namespace avx2 {
extern const CpuKernels kCpuKernels;
}
namespace baseline {
extern const CpuKernels kCpuKernels;
}

}  // namespace gxp
