// Gathers small plain data of every rank to rank 0 through the communicator.
#pragma once

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/collective/communicator.h"

namespace gxp {

// All ranks give equally many values; rank 0 gets them in order of rank, the others nothing.
template <class T>
std::vector<T> gather_values(Communicator& communicator, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto ranks = size_t(communicator.world_size());
  std::vector<T> values(communicator.rank() == 0 ? mine.size() * ranks : 0);
  communicator.run(
      {.collective = Collective::kGather, .dtype = DType::kU8, .count = mine.size_bytes() * ranks},
      memory_of(std::as_const(mine)), memory_of(values));
  return values;
}

// Rank 0's value, on every rank.
template <class T>
T value_of_rank_0(Communicator& communicator, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  communicator.broadcast({reinterpret_cast<std::byte*>(&value), sizeof value}, 0);
  return value;
}

}  // namespace gxp
