// The attention operations of kernels/ops.h as backends hand them to their kernels: packed and
// grouped heads are one form here.
#pragma once

#include <compare>
#include <cstddef>

#include "lib/base/dtype.h"

namespace gxp {

struct AttentionShape {
  size_t batch, positions, heads, kv_heads, head_size;
  auto operator<=>(const AttentionShape&) const = default;
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

}  // namespace gxp
