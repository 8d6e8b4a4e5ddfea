// The position of a head in the arrays of a batch. A `pair` is batch row * heads + head of queries,
// a `group` is batch row * kv_heads + head of keys and values: the pairs that read a group follow
// each other, so group = pair / members. Their numbers have 32 bits, as blocks do: a GPU divides
// such in a few instructions, and longer ones in a call.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/attention_args.h"
#include "kernels/math/tanh.h"

namespace gxp {

// How scores are made, and which keys a query sees. Kernels have a general form, and one for the
// default scores (has_default_scores()), which reads neither window nor cap. With the size of heads,
// if it is known at compile time, that form knows the scale, too: a register less.
template <bool kGeneral, int kHeadSize = 0>
struct ScoreMath {
  __device__ ScoreMath(const AttentionScores& scores, const AttentionShape& shape)
      : given_scale(scores.scale),
        cap(scores.cap),
        window(int(scores.window != 0 ? scores.window : shape.positions)) {}

  __device__ __forceinline__ float scale() const {
    return kGeneral || kHeadSize == 0 ? given_scale : 1.0f / sqrtf(float(kHeadSize));
  }
  __device__ __forceinline__ bool is_capped() const { return kGeneral && cap != 0; }
  __device__ __forceinline__ float score_of(float product) const {
    return is_capped() ? capped(product * scale(), cap) : product * scale();
  }
  // The gradient of product * scale(), of a score's.
  __device__ __forceinline__ float before_cap(float gradient, float score) const {
    return is_capped() ? gradient * slope_of_capped(score, cap) : gradient;
  }

  __device__ __forceinline__ bool is_too_far(int query, int key) const {
    return kGeneral && query - key >= window;
  }
  __device__ __forceinline__ bool hides(int query, int key) const {
    return key > query || is_too_far(query, key);
  }
  // The first key that a query sees.
  __device__ __forceinline__ int first_key(int query) const {
    return kGeneral && query >= window ? query - window + 1 : 0;
  }
  // The end of the queries that see a key.
  __device__ __forceinline__ int end_of_queries(int key, int positions) const {
    return kGeneral && positions - key > window ? key + window : positions;
  }

  float given_scale, cap;
  int window;
};

// One head of an array: the channels of position t begin at first + t * stride.
template <class T>
struct HeadSlice {
  T* first;
  size_t stride;
};

__host__ __device__ inline unsigned members_of(const AttentionShape& shape) {
  return unsigned(shape.heads) / unsigned(shape.kv_heads);
}

// A head of queries, outputs or their gradients.
template <class T, class Void>
__device__ HeadSlice<T> slice_of_pair(Void* array, const HeadStrides& strides,
                                      const AttentionShape& shape, unsigned pair) {
  const auto heads = unsigned(shape.heads);
  const size_t row = pair / heads * shape.positions;
  return {static_cast<T*>(array) + row * strides.row + pair % heads * strides.head, strides.row};
}
template <class T, class Void>
__device__ HeadSlice<T> slice_of_pair(Void* array, const AttentionShape& shape, unsigned pair) {
  return slice_of_pair<T>(array, strides_of_outs(shape), shape, pair);
}

// A head of keys, values or their gradients.
template <class T, class Void>
__device__ HeadSlice<T> slice_of_group(Void* array, const HeadStrides& strides,
                                       const AttentionShape& shape, unsigned group) {
  const auto heads = unsigned(shape.kv_heads);
  const size_t row = group / heads * shape.positions;
  return {static_cast<T*>(array) + row * strides.row + group % heads * strides.head, strides.row};
}

// Whether four channels at a time may be read, or written, of a head in an array.
template <class T>
bool heads_lie_in_fours(const void* array, const HeadStrides& strides, size_t head_size) {
  return reinterpret_cast<uintptr_t>(array) % (4 * sizeof(T)) == 0 && strides.row % 4 == 0 &&
         strides.head % 4 == 0 && head_size % 4 == 0;
}

}  // namespace gxp
