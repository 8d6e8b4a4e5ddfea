// Element types: their names, sizes and conversions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gxp {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU8 };

// Bytes of one element.
constexpr size_t size_of(DType dtype) {
  constexpr std::array<uint8_t, 8> kBytes = {8, 4, 2, 2, 8, 4, 1, 1};
  return kBytes[static_cast<size_t>(dtype)];
}
std::string_view to_string(DType dtype);  // "f32"
// Also by other common names: "fp32", "bfloat16", "half".
std::optional<DType> parse_dtype(std::string_view name);

// bfloat16: the upper half of a float32, rounded to nearest, ties to even. NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? uint16_t((word >> 16) | 0x40u)
               : uint16_t((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// IEEE 754 binary16, rounded to nearest, ties to even; overflow gives infinity. NaN stays NaN.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
};

// Calls visit(T{}) with the C++ type of `dtype`.
template <class Visit>
auto visit_dtype(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kF64:
      return visit(double{});
    case DType::kF32:
      return visit(float{});
    case DType::kF16:
      return visit(Float16{});
    case DType::kBF16:
      return visit(BFloat16{});
    case DType::kI64:
      return visit(int64_t{});
    case DType::kI32:
      return visit(int32_t{});
    case DType::kI8:
      return visit(int8_t{});
    case DType::kU8:
      return visit(uint8_t{});
  }
  return visit(uint8_t{});
}

}  // namespace gxp
