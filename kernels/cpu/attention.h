// Causal self-attention of one head of one batch row: one table for each instruction set.
#pragma once

#include <cstddef>

#include "lib/base/dtype.h"

namespace gxp {

struct AttentionShape {
  size_t positions, heads, kv_heads, head_size;
};

// Queries, keys and values of the whole batch, or their gradients. Each position's row holds the
// heads side by side; rows are `query_stride` and `kv_stride` elements apart, so that the three may
// lie in one array or in three. `Void` is void or const void.
template <class Void>
struct AttentionRows {
  Void* queries;
  Void* keys;
  Void* values;
  size_t query_stride, kv_stride;
};

// Elements behind void pointers are of `dtype`, f32, bf16 or f16; arithmetic is in f32.
struct AttentionForward {
  AttentionShape shape;
  DType dtype;
  AttentionRows<const void> in;
  void* out;   // (B, T, heads * head_size)
  float* lse;  // (B, heads, T)
};

struct AttentionBackward {
  AttentionShape shape;
  DType dtype;
  AttentionRows<const void> in;
  const void* out;
  const float* lse;
  const void* dout;
  AttentionRows<void> gradients;
  float* delta;  // (B, heads, T): row sums of dout * out
};

// Forward: `pair` = batch row * heads + head. Backward: `group` = batch row * kv_heads + head of
// keys and values, with all the heads of queries that read it, in order: their gradients of its
// keys and values are summed. Pairs and groups are independent; each reads and writes its own
// slices. `scratch` holds attention_scratch_floats(), aligned to 64 bytes; its content is of no
// interest.
struct AttentionKernels {
  void (*forward)(const AttentionForward& args, size_t pair, float* scratch);
  void (*backward)(const AttentionBackward& args, size_t group, float* scratch);
};

// Enough for any instruction set and for both passes: grows with T * D.
size_t attention_scratch_floats(const AttentionShape& shape);

}  // namespace gxp
