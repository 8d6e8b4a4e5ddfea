// Small plain data of every rank, brought to rank 0 through the communicator itself.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "lib/collective/communicator.h"

namespace gxp {

// All ranks give equally many bytes; rank 0 gets them in order of rank, the others nothing.
std::vector<std::byte> gather_bytes(Communicator& communicator, ConstMemory mine);

template <class T>
std::vector<T> gather_values(Communicator& communicator, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = std::as_bytes(mine);
  const std::vector<std::byte> all =
      gather_bytes(communicator, {bytes.data(), bytes.size(), MemorySpace::kHost});
  std::vector<T> values(all.size() / sizeof(T));
  std::copy_n(all.data(), all.size(), std::as_writable_bytes(std::span(values)).data());
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
