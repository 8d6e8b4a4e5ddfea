// The position of a head in the arrays of a batch. A `pair` is batch row * heads + head of queries,
// a `group` is batch row * kv_heads + head of keys and values: the pairs that read a group follow
// each other, so group = pair / members. Their numbers have 32 bits, as blocks do: a GPU divides
// such in a few instructions, and longer ones in a call.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/attention_args.h"
#include "kernels/math/tanh.h"

namespace gxp {

// The forms of kernels: for the default scores (has_default_scores()), which reads neither window nor
// cap; for any scores; for any scores, and rows of several documents.
enum class ScoreForm { kDefault, kGeneral, kDocuments };

// Calls visit(an integral constant: the form that the operation needs).
template <class Args, class Visit>
cudaError_t with_form(const Args& args, const Visit& visit) {
  using enum ScoreForm;
  if (args.document_begin != nullptr) return visit(std::integral_constant<ScoreForm, kDocuments>());
  return has_default_scores(args) ? visit(std::integral_constant<ScoreForm, kDefault>())
                                  : visit(std::integral_constant<ScoreForm, kGeneral>());
}

// How scores are made, and which keys a query sees. With the size of heads, if it is known at
// compile time, the form of default scores knows the scale, too: a register less.
template <ScoreForm kForm, int kHeadSize = 0>
struct ScoreMath {
  // `row_begins`: of the documents in the row of the batch; only read where there are documents.
  __device__ ScoreMath(const AttentionScores& scores, const AttentionShape& shape,
                       const int32_t* row_begins)
      : begins(row_begins),
        given_scale(scores.scale),
        cap(scores.cap),
        window(int(scores.window != 0 ? scores.window : shape.positions)),
        last(int(shape.positions) - 1) {}

  __device__ __forceinline__ float scale() const {
    return kForm != ScoreForm::kDefault || kHeadSize == 0 ? given_scale
                                                          : 1.0f / sqrtf(float(kHeadSize));
  }
  __device__ __forceinline__ bool is_capped() const {
    return kForm != ScoreForm::kDefault && cap != 0;
  }
  __device__ __forceinline__ float score_of(float product) const {
    return is_capped() ? capped(product * scale(), cap) : product * scale();
  }
  // The gradient of product * scale(), of a score's.
  __device__ __forceinline__ float before_cap(float gradient, float score) const {
    return is_capped() ? gradient * slope_of_capped(score, cap) : gradient;
  }

  // By their distance: positions may be counted from any other.
  __device__ __forceinline__ bool is_too_far(int query, int key) const {
    return kForm != ScoreForm::kDefault && query - key >= window;
  }
  __device__ __forceinline__ bool is_hidden_by_distance(int query, int key) const {
    return key > query || is_too_far(query, key);
  }
  // Positions of the row. Of a query behind its end, as of the last one.
  __device__ __forceinline__ bool hides(int query, int key) const {
    return is_hidden_by_distance(query, key) ||
           (kForm == ScoreForm::kDocuments && key < document_begin(query));
  }
  __device__ __forceinline__ int document_begin(int query) const {
    return begins[query < last ? query : last];
  }
  // The first key that a query sees; of a later query it is the same one or a later one.
  __device__ __forceinline__ int first_key(int query) const {
    const int in_window = kForm != ScoreForm::kDefault && query >= window ? query - window + 1 : 0;
    if (kForm != ScoreForm::kDocuments) return in_window;
    const int begin = document_begin(query);
    return begin > in_window ? begin : in_window;
  }
  // The end of the queries that see a key; of a later key it is the same one or a later one.
  __device__ __forceinline__ int end_of_queries(int key) const {
    const int positions = last + 1;
    int end = kForm != ScoreForm::kDefault && positions - key > window ? key + window : positions;
    if constexpr (kForm == ScoreForm::kDocuments) {
      // The first query behind the key whose document begins behind the key.
      for (int begin = key + 1; begin < end;) {
        const int middle = begin + (end - begin) / 2;
        if (begins[middle] > key)
          end = middle;
        else
          begin = middle + 1;
      }
    }
    return end;
  }

  const int32_t* begins;
  float given_scale, cap;
  int window, last;
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

// That of a pair, or of a group, of the row of the batch that it is in.
template <ScoreForm kForm, int kHeadSize = 0, class Args>
__device__ ScoreMath<kForm, kHeadSize> score_math_of_row(const Args& args, size_t row) {
  if (kForm != ScoreForm::kDocuments) return {args.scores, args.shape, nullptr};
  return {args.scores, args.shape, args.document_begin + row * args.shape.positions};
}
template <ScoreForm kForm, int kHeadSize = 0, class Args>
__device__ ScoreMath<kForm, kHeadSize> score_math_of_pair(const Args& args, unsigned pair) {
  return score_math_of_row<kForm, kHeadSize>(args, pair / unsigned(args.shape.heads));
}
template <ScoreForm kForm, int kHeadSize = 0, class Args>
__device__ ScoreMath<kForm, kHeadSize> score_math_of_group(const Args& args, unsigned group) {
  return score_math_of_row<kForm, kHeadSize>(args, group / unsigned(args.shape.kv_heads));
}

// Whether four channels at a time may be read, or written, of a head in an array.
template <class T>
bool heads_lie_in_fours(const void* array, const HeadStrides& strides, size_t head_size) {
  return reinterpret_cast<uintptr_t>(array) % (4 * sizeof(T)) == 0 && strides.row % 4 == 0 &&
         strides.head % 4 == 0 && head_size % 4 == 0;
}

}  // namespace gxp
