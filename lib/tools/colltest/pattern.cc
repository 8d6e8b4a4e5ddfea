#include "lib/tools/colltest/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lib/base/error.h"
#include "lib/base/hash.h"

namespace gxp {
namespace {

template <class T>
constexpr int kSignificandBits = std::is_same_v<T, double>    ? 53
                                 : std::is_same_v<T, float>   ? 24
                                 : std::is_same_v<T, Float16> ? 11
                                                              : 8;

// What a sum's magnitude does not exceed where it travels encoded.
constexpr int64_t kEncodedBound = int64_t{1} << kSignificandBits<Float16>;

template <class T>
long double widen(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

// To nearest. Through float for the half types: what is given here fits a float, or is an average,
// for which a second rounding of half an ulp is within the tolerance.
template <class T>
T narrow(long double value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// One element of one rank.
struct PatternElement {
  ReduceOp op;
  int rank;
  int world_size;
  size_t i;
  bool encoded = false;
  [[nodiscard]] uint64_t noise(uint64_t salt = 0) const;
  // A number from 0 to world_size - 1 that each rank has once per element.
  [[nodiscard]] int turn() const { return int((size_t(rank) + i) % size_t(world_size)); }
};

uint64_t PatternElement::noise(uint64_t salt) const {
  return mix64((uint64_t(i) + 1) * 0x9e3779b97f4a7c15u + uint64_t(rank) * 0xd1342543de82ef95u +
               salt);
}

// An integer whose magnitude, summed over the ranks, is at most `bound`.
int64_t bounded_integer(const PatternElement& place, int64_t bound, bool is_signed) {
  const int64_t n = place.world_size;
  if (n > bound) {  // only some ranks take part, others for each element
    const int64_t stride = (n + bound - 1) / bound;
    return place.turn() % stride == 0 ? 1 : 0;
  }
  const int64_t most = bound / n;
  const auto value = int64_t(place.noise() % uint64_t(is_signed ? 2 * most + 1 : most + 1));
  return is_signed ? value - most : value;
}

template <class T>
long double random_significand(const PatternElement& place) {  // from 1 to below 2
  const uint64_t fraction = place.noise(1) >> (65 - kSignificandBits<T>);
  return 1 + std::ldexp(static_cast<long double>(fraction), 1 - kSignificandBits<T>);
}

int small_exponent(const PatternElement& place, int most) {
  return int(place.noise(2) % uint64_t(2 * most + 1)) - most;
}

template <class T>
T float_value(const PatternElement& place) {
  const long double sign = (place.noise() & 1) != 0 ? -1 : 1;
  constexpr int64_t kBound = int64_t{1} << kSignificandBits<T>;
  switch (place.op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return narrow<T>(
          bounded_integer(place, place.encoded ? std::min(kBound, kEncodedBound) : kBound, true));
    case ReduceOp::kPreMulSum:
      return narrow<T>(bounded_integer(place, kBound / 2, true));
    case ReduceOp::kProd:
      if (place.turn() == 0) return narrow<T>(sign * random_significand<T>(place));
      return narrow<T>(place.turn() > 6 ? sign : std::ldexp(sign, small_exponent(place, 1)));
    default:
      return narrow<T>(std::ldexp(sign * random_significand<T>(place), small_exponent(place, 6)));
  }
}

template <class T>
T integer_value(const PatternElement& place) {
  const bool takes_part = place.noise(3) % uint64_t(place.world_size) == 0;
  const auto bits = static_cast<T>(place.noise());
  switch (place.op) {
    case ReduceOp::kAvg: {
      constexpr int64_t kBound = sizeof(T) == 8 ? INT64_MAX / 2 : std::numeric_limits<T>::max();
      return static_cast<T>(bounded_integer(place, kBound, std::is_signed_v<T>));
    }
    case ReduceOp::kProd:
      return static_cast<T>(bits | 1);
    case ReduceOp::kBitAnd:
      return takes_part ? bits : static_cast<T>(-1);
    case ReduceOp::kBitOr:
    case ReduceOp::kLogicalXor:
      return takes_part ? bits : T{0};
    case ReduceOp::kLogicalAnd:
      return takes_part && (bits & 1) != 0 ? T{0} : static_cast<T>(bits | 1);
    case ReduceOp::kLogicalOr:
      return takes_part && (bits & 1) != 0 ? bits : T{0};
    default:
      return bits;
  }
}

template <class T>
T value_at(const PatternElement& place) {
  if constexpr (std::is_integral_v<T>) {
    return integer_value<T>(place);
  } else {
    return float_value<T>(place);
  }
}

template <class T>
T reduced_float(PatternElement place) {
  long double result = 0;
  for (place.rank = 0; place.rank < place.world_size; ++place.rank) {
    long double value = widen(float_value<T>(place));
    if (place.op == ReduceOp::kPreMulSum) value *= 1 + place.rank % 2;
    if (place.rank == 0) {
      result = value;
    } else if (place.op == ReduceOp::kProd) {
      result *= value;
    } else if (place.op == ReduceOp::kMin) {
      result = std::min(result, value);
    } else if (place.op == ReduceOp::kMax) {
      result = std::max(result, value);
    } else {
      result += value;
    }
  }
  return narrow<T>(place.op == ReduceOp::kAvg ? result / place.world_size : result);
}

// Modulo 2^64, of which the type's bits are the lowest.
template <class T>
uint64_t combine(ReduceOp op, uint64_t a, uint64_t b) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMin:
      return uint64_t(std::min(static_cast<T>(a), static_cast<T>(b)));
    case ReduceOp::kMax:
      return uint64_t(std::max(static_cast<T>(a), static_cast<T>(b)));
    case ReduceOp::kBitAnd:
      return a & b;
    case ReduceOp::kBitOr:
      return a | b;
    case ReduceOp::kBitXor:
      return a ^ b;
    case ReduceOp::kLogicalAnd:
      return uint64_t{a != 0 && b != 0};
    case ReduceOp::kLogicalOr:
      return uint64_t{a != 0 || b != 0};
    case ReduceOp::kLogicalXor:
      return uint64_t{(a != 0) != (b != 0)};
    default:
      return a + b;
  }
}

template <class T>
T reduced_integer(PatternElement place) {
  uint64_t result = 0;
  for (place.rank = 0; place.rank < place.world_size; ++place.rank) {
    auto value = uint64_t(int64_t(integer_value<T>(place)));
    if (place.op == ReduceOp::kPreMulSum) value *= uint64_t(1 + place.rank % 2);
    result = place.rank == 0 ? value : combine<T>(place.op, result, value);
  }
  if (place.op != ReduceOp::kAvg) return static_cast<T>(result);
  return static_cast<T>(static_cast<T>(result) / place.world_size);
}

template <class T>
T reduced_at(const PatternElement& place) {
  if constexpr (std::is_integral_v<T>) {
    return reduced_integer<T>(place);
  } else {
    return reduced_float<T>(place);
  }
}

// make(T{}, i) for each i, as bytes.
template <class Make>
std::vector<std::byte> elements(DType dtype, size_t count, const Make& make) {
  std::vector<std::byte> bytes(count * size_of(dtype));
  visit_dtype(dtype, [&](auto type) {
    for (size_t i = 0; i < count; ++i) {
      const auto value = make(type, i);
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
  });
  return bytes;
}

// Neighbouring floats have neighbouring numbers.
template <class Bits>
int64_t ordinal(const std::byte* element) {
  Bits bits;
  std::memcpy(&bits, element, sizeof bits);
  return bits < 0 ? int64_t(std::numeric_limits<Bits>::min()) - bits : int64_t(bits);
}

template <class Bits>
bool within_2_ulp(const std::byte* a, const std::byte* b) {
  const int64_t x = ordinal<Bits>(a);
  const int64_t y = ordinal<Bits>(b);
  return uint64_t(std::max(x, y)) - uint64_t(std::min(x, y)) <= 2;
}

// Each host's sum is encoded, and then what the encoded ones add up to; the result is rounded to T.
template <class T>
bool within_codec_error(const Pattern& pattern, T got, T want) {
  const double largest =
      double(kEncodedBound) / (pattern.op == ReduceOp::kAvg ? double(pattern.world_size) : 1);
  const double rounding = std::ldexp(1, -kSignificandBits<T>);
  const double lost = pattern.codec_error * (2 + pattern.codec_error) + 2 * rounding;
  return std::abs(widen(got) - widen(want)) <= lost * largest;
}

bool within_codec_error(const Pattern& pattern, const std::byte* got, const std::byte* want) {
  return visit_dtype(pattern.dtype, [&](auto a) {
    auto b = a;
    std::memcpy(&a, got, sizeof a);
    std::memcpy(&b, want, sizeof b);
    if constexpr (std::is_integral_v<decltype(a)>) {
      return false;  // codecs are for floats
    } else {
      return within_codec_error(pattern, a, b);
    }
  });
}

}  // namespace

std::vector<std::byte> pattern_input(const Pattern& pattern, int rank, size_t count) {
  return elements(pattern.dtype, std::min(count, kPeriod), [&](auto type, size_t i) {
    return value_at<decltype(type)>(
        {pattern.op, rank, pattern.world_size, i, pattern.codec_error > 0});
  });
}

std::vector<std::byte> pattern_reduced(const Pattern& pattern, size_t count) {
  return elements(pattern.dtype, std::min(count, kPeriod), [&](auto type, size_t i) {
    return reduced_at<decltype(type)>(
        {pattern.op, 0, pattern.world_size, i, pattern.codec_error > 0});
  });
}

bool same_element(const Pattern& pattern, const std::byte* got, const std::byte* want) {
  const size_t bytes = size_of(pattern.dtype);
  if (std::memcmp(got, want, bytes) == 0) return true;
  if (pattern.codec_error > 0) return within_codec_error(pattern, got, want);
  const bool floating = !supports(ReduceOp::kBitAnd, pattern.dtype);
  if (pattern.op != ReduceOp::kAvg || !floating) return false;
  if (bytes == 8) return within_2_ulp<int64_t>(got, want);
  if (bytes == 4) return within_2_ulp<int32_t>(got, want);
  return within_2_ulp<int16_t>(got, want);
}

std::string element_text(DType dtype, const std::byte* element) {
  return visit_dtype(dtype, [&](auto value) -> std::string {
    std::memcpy(&value, element, sizeof value);
    if constexpr (std::is_integral_v<decltype(value)>)
      return fmt::format("{}", int64_t(value));
    else
      return fmt::format("{}", double(widen(value)));
  });
}

}  // namespace gxp
