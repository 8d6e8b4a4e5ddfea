// Texts that the ranks of a group exchange by the group's own collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lib/collective/algorithm/call.h"
#include "lib/device/memory.h"

namespace gxp {

// Carries out a call of the group, on the host's memory.
using RunCall = std::function<void(const Call& call, ConstMemory input, Memory output)>;

// [collective] Every rank's value, in order of rank.
template <class Value>
std::vector<Value> gather_values(int rank, int world_size, const Value& mine, const RunCall& run) {
  static_assert(std::is_trivially_copyable_v<Value>);
  constexpr DType kType = std::is_same_v<Value, int64_t> ? DType::kI64 : DType::kU8;
  std::vector<Value> all(size_t(world_size), Value{});
  all[size_t(rank)] = mine;
  const Memory memory = memory_of(all);
  run({.collective = Collective::kAllGather,
       .dtype = kType,
       .count = memory.bytes / size_of(kType)},
      memory.slice(size_t(rank) * sizeof(Value), sizeof(Value)), memory);
  return all;
}

// The most bytes that all texts of one call may have together: the longest are those that make up a
// checkpoint's manifest.
inline constexpr uint64_t kMaxGatheredBytes = uint64_t{1} << 30;

// [collective] Every rank's text, in order of rank. Errors: those of `run`, and text_offsets().
// Cost: memory for all texts, once in transit and once as strings; an all-gather of 8 bytes a rank,
// then an all-reduce of all texts.
std::vector<std::string> gather_texts(int rank, int world_size, std::string_view mine,
                                      const RunCall& run);

// The offset of each text in their concatenation, and after the last one the total size. Pure.
// Sizes come from the ranks: kPeer, naming the rank, if one is negative or the sum exceeds
// kMaxGatheredBytes.
std::vector<size_t> text_offsets(std::span<const int64_t> sizes);

// A rank's arguments of Communicator::split(); a color below 0: no group. ranks_of_color() returns
// the ranks with that color, ordered by (key, rank).
struct SplitRequest {
  int64_t color = 0;
  int64_t key = 0;
  int64_t next_group = 0;  // the first number of a group that the rank has not used
};
std::vector<int> ranks_of_color(int color, std::span<const SplitRequest> requests);

}  // namespace gxp
