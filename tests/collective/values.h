// Test data whose reductions are exact in every element type and in any order.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/device/memory.h"

namespace gxp {

// Calls visit(T{}) with the C++ type of a floating-point dtype.
template <class Visit>
auto visit_float(DType dtype, const Visit& visit) {
  if (dtype == DType::kF64) return visit(double{});
  if (dtype == DType::kF16) return visit(Float16{});
  if (dtype == DType::kBF16) return visit(BFloat16{});
  return visit(float{});
}

// `count` elements of a floating-point dtype.
struct Values {
  DType dtype = DType::kF32;
  std::vector<std::byte> bytes;

  Values() = default;
  Values(DType type, size_t count) : dtype(type), bytes(count * size_of(type)) {}
  [[nodiscard]] size_t count() const { return bytes.size() / size_of(dtype); }
  [[nodiscard]] Memory memory() { return memory_of(bytes); }
  void set(size_t i, double value) {
    visit_float(dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_same_v<T, double>) {
        element = value;
      } else {
        element = T(static_cast<float>(value));
      }
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
    });
  }
  [[nodiscard]] double get(size_t i) const {
    return visit_float(dtype, [&](auto element) {
      using T = decltype(element);
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_same_v<T, double>) return element;
      return static_cast<double>(static_cast<float>(element));
    });
  }
};

// 1, 2 or -1: sums and products over eight ranks are exact in bf16.
inline double small_integer(int rank, size_t i) {
  constexpr double kValues[] = {1, 2, -1};
  return kValues[(static_cast<size_t>(rank) * 5 + i * 7 + i / 3) % 3];
}

inline Values small_integers(DType dtype, int rank, size_t count) {
  Values values(dtype, count);
  for (size_t i = 0; i < count; ++i) values.set(i, small_integer(rank, i));
  return values;
}

// Values of mixed magnitude, whose sum depends on the order.
inline std::vector<float> rough_floats(int rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const auto seed = static_cast<double>(i + 1) * (rank + 1.7);
    values[i] = static_cast<float>(std::sin(seed) * std::exp2(std::fmod(seed * 3.1, 12.0)));
  }
  return values;
}

}  // namespace gxp
