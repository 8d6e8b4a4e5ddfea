// The attention operations of kernels/ops.h as backends hand them to their kernels: every layout of
// heads is one form here.
#pragma once

#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "kernels/attention_scores.h"
#include "lib/base/dtype.h"

namespace gxp {

struct AttentionShape {
  size_t batch, positions, heads, kv_heads, head_size;
  auto operator<=>(const AttentionShape&) const = default;
};

// Elements between the rows of two positions, and between two heads in a row. With 64 bits, ptxas
// spills registers of some kernels.
struct HeadStrides {
  uint32_t row, head;
  auto operator<=>(const HeadStrides&) const = default;
};

// Queries, keys and values of the whole batch, or their gradients, in one array or in three. `Void`
// is void or const void.
template <class Void>
struct AttentionRows {
  Void* queries;
  Void* keys;
  Void* values;
  HeadStrides of_queries, of_kv;
};

// The strides of `out` and `dout`, whose heads lie side by side.
constexpr HeadStrides strides_of_outs(const AttentionShape& shape) {
  return {uint32_t(shape.heads * shape.head_size), uint32_t(shape.head_size)};
}

inline float default_scale(const AttentionShape& shape) {
  return 1.0f / std::sqrt(float(shape.head_size));
}

// Elements behind void pointers are of `dtype`, f32, bf16 or f16; arithmetic is in f32. The scores'
// scale is not 0, and their window, if there is one, is smaller than `positions`. document_begin is
// (B, T) as kernels/ops.h has it, or null.
struct AttentionForward {
  AttentionShape shape;
  DType dtype;
  AttentionScores scores;
  AttentionRows<const void> in;
  void* out;   // (B, T, heads * head_size)
  float* lse;  // (B, heads, T)
  const int32_t* document_begin;
};

// The positions of `shape` are those of the queries. The window is smaller than positions().
struct AttentionCached {
  AttentionShape shape;
  size_t first;  // the first query's position
  size_t rows;   // of keys and values, in each row of the batch
  DType dtype;
  AttentionScores scores;
  AttentionRows<const void> in;
  void* out;

  // Up to the last query's.
  [[nodiscard]] constexpr size_t positions() const { return first + shape.positions; }
};

struct AttentionBackward {
  AttentionShape shape;
  DType dtype;
  AttentionScores scores;
  AttentionRows<const void> in;
  const void* out;
  const float* lse;
  const void* dout;
  AttentionRows<void> gradients;
  float* delta;  // (B, heads, T): row sums of dout * out
  const int32_t* document_begin;
};

// Whether scores are just products by the default scale.
template <class Args>
bool has_default_scores(const Args& args) {
  return args.scores == AttentionScores{.scale = default_scale(args.shape)};
}

}  // namespace gxp
