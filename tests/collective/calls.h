// Any call on data whose result is exact in every element type and in any order, and its check.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "lib/collective/communicator.h"

namespace gxp {

// Small enough that sums and products over eight ranks are exact in bf16 and fit i8.
inline int64_t input_value(int rank, size_t i, DType dtype) {
  constexpr int64_t kSigned[] = {1, 2, -1};
  constexpr int64_t kUnsigned[] = {1, 2, 0};
  const size_t k = (size_t(rank) * 5 + i * 7 + i / 3) % 3;
  return dtype == DType::kU8 ? kUnsigned[k] : kSigned[k];
}

inline double factor_of(int rank) { return rank % 2 == 0 ? 1 : 2; }

inline int64_t combine(int64_t a, int64_t b, ReduceOp op) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kBitAnd:
      return a & b;
    case ReduceOp::kBitOr:
      return a | b;
    case ReduceOp::kBitXor:
      return a ^ b;
    case ReduceOp::kLogicalAnd:
      return (a != 0 && b != 0) ? 1 : 0;
    case ReduceOp::kLogicalOr:
      return (a != 0 || b != 0) ? 1 : 0;
    case ReduceOp::kLogicalXor:
      return ((a != 0) != (b != 0)) ? 1 : 0;
    default:
      return a + b;
  }
}

inline int64_t reduced_value(size_t i, const Call& call, int world_size) {
  const auto input = [&](int rank) {
    const int64_t value = input_value(rank, i, call.dtype);
    return call.op == ReduceOp::kPreMulSum ? value * int64_t(factor_of(rank)) : value;
  };
  int64_t value = input(0);
  for (int rank = 1; rank < world_size; ++rank) value = combine(value, input(rank), call.op);
  return value;
}

// What element i of the logical buffer is at `rank` when the call is done.
inline int64_t result_value(size_t i, const Call& call, int rank, int world_size) {
  const auto owner = [&] {
    int r = 0;
    for (const Chunks chunks(call.count, world_size); i >= chunks[r].end();) ++r;
    return r;
  };
  switch (call.collective) {
    case Collective::kAllGather:
    case Collective::kGather:
      return input_value(owner(), i, call.dtype);
    case Collective::kBroadcast:
    case Collective::kScatter:
      return input_value(call.root, i, call.dtype);
    case Collective::kAllToAll: {
      const size_t block = call.count / size_t(world_size);
      return input_value(int(i / block), size_t(rank) * block + i % block, call.dtype);
    }
    default:
      return reduced_value(i, call, world_size);
  }
}

template <class T>
T to_element(int64_t value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

template <class T>
T average_of(int64_t sum, int world_size) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(sum / world_size);
  } else if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(sum) * (1.0 / world_size);
  } else {
    return T(static_cast<float>(sum) * static_cast<float>(1.0 / world_size));
  }
}

template <class T>
std::string check_elements(const std::byte* output, Range range, const Call& call, int rank,
                           int world_size) {
  const bool average = call.op == ReduceOp::kAvg && reduces(call.collective);
  for (size_t i = range.begin; i < range.end(); ++i) {
    const int64_t value = result_value(i, call, rank, world_size);
    const T want = average ? average_of<T>(value, world_size) : to_element<T>(value);
    if (std::memcmp(output + (i - range.begin) * sizeof(T), &want, sizeof(T)) == 0) continue;
    return fmt::format("{} at rank {} of {}: element {} is not {}", to_string(call), rank,
                       world_size, i, value);
  }
  return "";
}

// Fills the inputs, runs the call and checks the output: what is wrong, or "". `in` and `out` hold
// the whole logical buffer each; in place they are the same.
inline std::string run_and_check(Communicator& comm, Call call, Memory in, Memory out) {
  const int rank = comm.rank();
  const size_t element_bytes = size_of(call.dtype);
  const Extents extents = extents_of(call, rank, comm.world_size());
  call.factor = factor_of(rank);
  const auto part = [&](Memory memory, Range range) {
    return memory.slice(range.begin * element_bytes, range.count * element_bytes);
  };
  const Memory input = part(in, extents.input);
  const Memory output = part(out, extents.output);
  return visit_dtype(call.dtype, [&](auto element) {
    using T = decltype(element);
    if (output.bytes > 0) std::memset(output.data, 0x5a, output.bytes);
    for (size_t i = extents.input.begin; i < extents.input.end(); ++i) {
      const T value = to_element<T>(input_value(rank, i, call.dtype));
      std::memcpy(input.data + (i - extents.input.begin) * sizeof(T), &value, sizeof(T));
    }
    comm.run(call, input, output);
    return check_elements<T>(output.data, extents.output, call, rank, comm.world_size());
  });
}

}  // namespace gxp
