// The position of a head in the arrays of a batch. A `pair` is batch row * heads + head of queries,
// a `group` is batch row * kv_heads + head of keys and values: the pairs that read a group follow
// each other, so group = pair / members. Their numbers have 32 bits, as blocks do: a GPU divides
// such in a few instructions, and longer ones in a call.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/attention_args.h"

namespace gxp {

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
__device__ HeadSlice<T> slice_of_pair(Void* array, size_t stride, const AttentionShape& shape,
                                      unsigned pair) {
  const auto heads = unsigned(shape.heads);
  const size_t row = pair / heads * shape.positions;
  return {static_cast<T*>(array) + row * stride + pair % heads * shape.head_size, stride};
}
template <class T, class Void>
__device__ HeadSlice<T> slice_of_pair(Void* array, const AttentionShape& shape, unsigned pair) {
  return slice_of_pair<T>(array, shape.heads * shape.head_size, shape, pair);
}

// A head of keys, values or their gradients.
template <class T, class Void>
__device__ HeadSlice<T> slice_of_group(Void* array, size_t stride, const AttentionShape& shape,
                                       unsigned group) {
  const auto heads = unsigned(shape.kv_heads);
  const size_t row = group / heads * shape.positions;
  return {static_cast<T*>(array) + row * stride + group % heads * shape.head_size, stride};
}

// Whether four channels at a time may be read, or written, of a head in an array.
template <class T>
bool heads_lie_in_fours(const void* array, size_t stride, size_t head_size) {
  return reinterpret_cast<uintptr_t>(array) % (4 * sizeof(T)) == 0 && stride % 4 == 0 &&
         head_size % 4 == 0;
}

}  // namespace gxp
