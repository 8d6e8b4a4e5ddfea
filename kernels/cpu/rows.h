// Kernels over the rows of a matrix: layer and RMS norm, rotations, sums of rows, embeddings. One
// table for each instruction set; callers are on the CPU backend's threads, each with its own rows
// (or columns).
#pragma once

#include <cstddef>

namespace gxp {

struct RowStatistics {
  float mean, rstd;
};

struct LayerNormRow {
  float* out;
  const float* x;
  const float* weight;
  const float* bias;
  size_t columns;
};

struct NormGradients {
  float* dx;
  const float* dout;
  const float* x;
  const float* mean;  // not read by an RMS norm
  const float* rstd;
  const float* weight;
  size_t columns;
};

// The rotation of one position. `direction` > 0 is forward, < 0 backward.
struct Rotation {
  const float* cosines;
  const float* sines;
  size_t pairs;
  float direction;  // 1 or -1
};

// Formulas: kernels/ops.h.
struct RowKernels {
  RowStatistics (*statistics)(const float* x, size_t columns, float eps);
  void (*layernorm_row)(const LayerNormRow& row, RowStatistics statistics);
  // Rows [begin, end); dweight(columns) and dbias(columns) +=, over these rows.
  void (*layernorm_backward)(const NormGradients& args, size_t begin, size_t end, float* dweight,
                             float* dbias);
  float (*rms_rstd)(const float* x, size_t columns, float eps);
  void (*rmsnorm_row)(float* out, const float* x, const float* weight, size_t columns, float rstd);
  // Rows [begin, end); dweight(columns) +=, over these rows.
  void (*rmsnorm_backward)(const NormGradients& args, size_t begin, size_t end, float* dweight);
  // Turns `heads` heads of one position, the first at x, each `stride` floats after the one before.
  void (*rotate)(float* x, size_t heads, size_t stride, const Rotation& rotation);
  // sum(columns) += rows(count, columns), whose rows are `stride` floats apart.
  void (*add_rows)(float* sum, const float* rows, size_t count, size_t columns, size_t stride);
  // out(columns) = a(columns) + b(columns).
  void (*add)(float* out, const float* a, const float* b, size_t columns);
};

}  // namespace gxp
