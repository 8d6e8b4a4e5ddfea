// Kernels that see an array element by element, and sums over arrays: one table for each
// instruction set. Callers are on the CPU backend's threads, each with its own range.
#pragma once

#include <cstddef>

namespace gxp {

// On arrays of `count` floats; `settings` points to an object of the operation's struct.
using ElementwiseKernel = void (*)(float* const* arrays, size_t count, const void* settings);

// Formulas: kernels/ops.h. An element's bits do not depend on the range it is computed in.
struct ElementwiseKernels {
  const ElementwiseKernel* apply;  // one for each type of ElementwiseMath, in its order
  void (*add_squares)(double* sums, const float* x, size_t count);  // sums[i] += x[i]^2
  void (*scale)(float* out, const float* x, const float* by, float factor, size_t count);
  // In double over 16 interleaved sums: the same bits on every instruction set.
  double (*sum)(const float* x, size_t count);
  double (*sum_of_squares)(const float* x, size_t count);
};

}  // namespace gxp
