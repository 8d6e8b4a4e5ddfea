// Causal self-attention of one head of one batch row: one table for each instruction set.
#pragma once

#include <cstddef>

namespace gxp {

// Arrays as kernels/ops.h lays them out, for the whole batch.
struct AttentionShape {
  size_t positions, channels, heads;
};

struct AttentionForward {
  AttentionShape shape;
  const float* qkv;
  float* out;
  float* lse;
};

struct AttentionBackward {
  AttentionShape shape;
  const float* qkv;
  const float* out;
  const float* lse;
  const float* dout;
  float* dqkv;
  float* delta;  // (B, H, T): row sums of dout * out
};

// `pair` = batch row * heads + head. Pairs are independent; each reads and writes its own slices.
// `scratch` holds attention_scratch_floats(), aligned to 64 bytes; its content is of no interest.
struct AttentionKernels {
  void (*forward)(const AttentionForward& args, size_t pair, float* scratch);
  void (*backward)(const AttentionBackward& args, size_t pair, float* scratch);
};

// Enough for any instruction set and for both passes: grows with T * D.
size_t attention_scratch_floats(const AttentionShape& shape);

}  // namespace gxp
