#include "lib/base/dtype.h"

#include <array>
#include <cmath>

#include "lib/base/enum_names.h"
#include "lib/base/text/word_aliases.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"f64", "f32", "f16", "bf16",
                                                    "i64", "i32", "i8",  "u8"};

}  // namespace

std::string_view to_string(DType dtype) { return kNames[static_cast<size_t>(dtype)]; }

std::optional<DType> parse_dtype(std::string_view name) {
  const auto word = find_word(kNames, name);
  return word ? find_enumerator<DType>(kNames, *word) : std::nullopt;
}

Float16::Float16(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const auto sign = uint16_t((word >> 16) & 0x8000u);
  const uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    bits = sign | 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    bits = sign | 0x7c00u;
  } else if (magnitude < 0x38800000u) {               // below 2^-14: subnormal, a multiple of 2^-24
    const float scaled = std::fabs(value) * 0x1p24f;  // exact: a power of two
    bits = sign | uint16_t(std::nearbyint(scaled));
  } else {
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    bits =
        sign | uint16_t((rounded - 0x38000000u) >> 13);  // the exponent's bias goes from 127 to 15
  }
}

Float16::operator float() const {
  const uint32_t sign = uint32_t(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = float(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 0x7f800000u : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | wide | (mantissa << 13));
}

}  // namespace gxp
