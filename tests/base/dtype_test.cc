#include "lib/base/dtype.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/catch.h"

namespace gxp {
namespace {

// The definition of binary16, in exact double arithmetic; `bits` without sign, up to 0x7c00, which
// stands for the first power of two that is too large.
double half_magnitude(uint32_t bits) {
  const uint32_t exponent = bits >> 10;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) return std::ldexp(double(mantissa), -24);
  return std::ldexp(1024.0 + mantissa, int(exponent) - 25);
}

double bfloat16_magnitude(uint32_t bits) {
  const uint32_t exponent = bits >> 7;
  const uint32_t mantissa = bits & 0x7f;
  if (exponent == 0) return std::ldexp(double(mantissa), -133);
  return std::ldexp(128.0 + mantissa, int(exponent) - 134);
}

// The bits whose magnitude is nearest, ties to even; `infinity` if beyond the last one.
template <class Magnitude>
uint32_t nearest_bits(double value, Magnitude magnitude, uint32_t infinity) {
  uint32_t low = 0;
  uint32_t high = infinity;
  if (value >= magnitude(infinity)) return infinity;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (magnitude(middle) <= value ? low : high) = middle;
  }
  const double below = value - magnitude(low);
  const double above = magnitude(high) - value;
  if (below != above) return below < above ? low : high;
  return low % 2 == 0 ? low : high;
}

std::vector<float> probing_floats() {
  std::vector<float> values = {0.0f,
                               65504.0f,
                               65519.99f,
                               65520.0f,
                               0x1p-14f,
                               0x1p-24f,
                               0x1p-25f,
                               0x1.8p-24f,
                               1.0f,
                               3.0e38f,
                               std::numeric_limits<float>::max()};
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const float value = std::bit_cast<float>(uint32_t(random()));
    if (std::isfinite(value)) values.push_back(value);
    values.push_back(std::ldexp(float(random() % 4096), int(random() % 42) - 36));
  }
  return values;
}

}  // namespace

TEST_CASE("float to binary16 rounds to nearest, ties to even", "[base]") {
  int wrong = 0;
  for (const float value : probing_floats()) {
    const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
    const uint32_t expected = sign | nearest_bits(std::fabs(value), half_magnitude, 0x7c00);
    wrong += Float16(value).bits == expected ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("float to bfloat16 rounds to nearest, ties to even", "[base]") {
  int wrong = 0;
  for (const float value : probing_floats()) {
    const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
    const uint32_t expected = sign | nearest_bits(std::fabs(value), bfloat16_magnitude, 0x7f80);
    wrong += BFloat16(value).bits == expected ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every 16-bit value survives the way through float", "[base]") {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Float16 half;
    BFloat16 brain;
    half.bits = brain.bits = uint16_t(bits);
    const bool half_nan = (bits & 0x7fff) > 0x7c00;
    const bool brain_nan = (bits & 0x7fff) > 0x7f80;
    const bool half_ok = half_nan ? std::isnan(float(half)) : Float16(float(half)).bits == bits;
    const bool brain_ok =
        brain_nan ? std::isnan(float(brain)) : BFloat16(float(brain)).bits == bits;
    wrong += half_ok && brain_ok ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("NaN and infinity stay what they are", "[base]") {
  const float nan = std::bit_cast<float>(GENERATE(0x7f800001u, 0x7fffffffu, 0xff800001u));
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(std::isnan(float(Float16(nan))));
  CHECK(std::isnan(float(BFloat16(nan))));
  CHECK(float(Float16(-infinity)) == -infinity);
  CHECK(float(BFloat16(infinity)) == infinity);
}

TEST_CASE("every dtype is found by its name and has its size", "[base]") {
  const auto [dtype, name, bytes] =
      GENERATE(table<DType, std::string, size_t>({{DType::kF64, "f64", 8},
                                                  {DType::kF32, "f32", 4},
                                                  {DType::kF16, "f16", 2},
                                                  {DType::kBF16, "bf16", 2},
                                                  {DType::kI64, "i64", 8},
                                                  {DType::kI32, "i32", 4},
                                                  {DType::kI8, "i8", 1},
                                                  {DType::kU8, "u8", 1}}));
  CHECK(to_string(dtype) == name);
  CHECK(parse_dtype(name) == dtype);
  CHECK(size_of(dtype) == bytes);
  CHECK_FALSE(parse_dtype("f8").has_value());
  CHECK(parse_dtype("bfloat16") == DType::kBF16);
  CHECK(parse_dtype("half") == DType::kF16);
}

}  // namespace gxp
