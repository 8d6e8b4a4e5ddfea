// Kernels that see an array element by element, and sums over arrays: one table for each
// instruction set. Callers are on the CPU backend's threads, each with its own range.
#pragma once

#include <cstddef>

namespace gxp {

struct AdamWFactors;     // kernels/math/adamw.h
struct LionFactors;      // kernels/math/lion.h
struct MomentumFactors;  // kernels/math/momentum.h
struct SgdFactors;       // kernels/math/momentum.h

struct AdamWArrays {
  float* weights;
  float* first;
  float* second;
  const float* gradients;
};

struct SgdArrays {
  float* weights;
  float* momentum;  // nullptr: there is none
  const float* gradients;
};

struct LionArrays {
  float* weights;
  float* momentum;
  const float* gradients;
};

struct MomentumArrays {
  float* direction;
  float* momentum;
  const float* gradients;
};

// Formulas: kernels/ops.h. An element's bits do not depend on the range it is computed in.
struct ElementwiseKernels {
  void (*gelu_forward)(float* out, const float* x, size_t count);
  void (*gelu_backward)(float* dx, float* activated, const float* dout, const float* x,
                        size_t count);
  void (*swiglu_forward)(float* out, const float* gate, const float* up, size_t count);
  void (*swiglu_backward)(float* dout, float* gate, float* up, size_t count);
  void (*adamw)(const AdamWArrays& arrays, size_t count, const AdamWFactors& factors);
  void (*sgd)(const SgdArrays& arrays, size_t count, const SgdFactors& factors);
  void (*lion)(const LionArrays& arrays, size_t count, const LionFactors& factors);
  void (*momentum)(const MomentumArrays& arrays, size_t count, const MomentumFactors& factors);
  void (*add_squares)(double* sums, const float* x, size_t count);  // sums[i] += x[i]^2
  void (*scale)(float* out, const float* x, const float* by, float factor, size_t count);
  // In double over 16 interleaved sums: the same bits on every instruction set.
  double (*sum)(const float* x, size_t count);
  double (*sum_of_squares)(const float* x, size_t count);
};

}  // namespace gxp
