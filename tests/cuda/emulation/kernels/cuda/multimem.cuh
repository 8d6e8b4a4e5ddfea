// A switch between emulated GPUs, of threads or processes; found in place of kernels/cuda's header.
// It begins its sums with the last GPU, so their bits are not those of the reduction tree.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/half.cuh"
#include "kernels/math/fold.h"
#include "tests/cuda/emulation/multicast.h"

namespace gxp {

enum class SwitchOp { kSum, kMin, kMax };

inline void multimem_fence() {}

inline void multimem_store(std::byte* to, const uint4& value) {
  for (std::byte* place : emulation::places_behind(to)) std::memcpy(place, &value, sizeof value);
}

// What elements are added as, and how a sum is stored.
template <class T>
auto widened(T x) {
  if constexpr (sizeof(T) == sizeof(uint16_t))
    return to_float(x);
  else
    return x;
}
template <class T, class Value>
T narrowed(Value x) {
  if constexpr (sizeof(T) == sizeof(uint16_t))
    return round_to<T>(x);
  else
    return x;
}

template <SwitchOp kOp, class Value>
Value reduced(Value a, Value b) {
  if constexpr (kOp == SwitchOp::kMin)
    return FoldMin()(a, b);
  else if constexpr (kOp == SwitchOp::kMax)
    return FoldMax()(a, b);
  else if constexpr (std::is_integral_v<Value>)
    return Value(uint64_t(a) + uint64_t(b));
  else
    return a + b;
}

template <class T, SwitchOp kOp>
uint4 multimem_reduce(const std::byte* at) {
  constexpr size_t kCount = sizeof(uint4) / sizeof(T);
  const auto places = emulation::places_behind(at);
  std::array<T, kCount> elements;
  std::array<decltype(widened(T{})), kCount> sums{};
  for (size_t place = places.size(); place-- > 0;) {
    std::memcpy(elements.data(), places[place], sizeof elements);
    const bool is_first = place + 1 == places.size();
    for (size_t i = 0; i < kCount; ++i) {
      const auto value = widened(elements[i]);
      sums[i] = is_first ? value : reduced<kOp>(sums[i], value);
    }
  }
  for (size_t i = 0; i < kCount; ++i) elements[i] = narrowed<T>(sums[i]);
  return std::bit_cast<uint4>(elements);
}

}  // namespace gxp
