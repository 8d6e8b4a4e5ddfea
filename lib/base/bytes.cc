#include "lib/base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <limits>

namespace gxp {

std::string format_bytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

namespace {

// Of a number, "6.9": what is before and behind the point, the latter in 10^-digits.
struct Decimal {
  uint64_t whole = 0;
  uint64_t fraction = 0;
  uint64_t fraction_of = 1;  // 10^digits
  const char* end = nullptr;
};

// Digits beyond the eighteenth behind the point count for less than a byte of any size, and are passed
// over.
std::optional<Decimal> parse_decimal(std::string_view text) {
  constexpr uint64_t kSmallest = 1'000'000'000'000'000'000;
  Decimal decimal;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, decimal.whole);
  if (error == std::errc::result_out_of_range) return std::nullopt;
  decimal.end = end;
  if (end == last || *end != '.')
    return error == std::errc() ? std::optional(decimal) : std::nullopt;
  const char* digit = end + 1;
  for (; digit != last && *digit >= '0' && *digit <= '9'; ++digit) {
    if (decimal.fraction_of == kSmallest) continue;
    decimal.fraction = decimal.fraction * 10 + uint64_t(*digit - '0');
    decimal.fraction_of *= 10;
  }
  decimal.end = digit;
  return digit == end + 1 ? std::nullopt : std::optional(decimal);
}

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  const std::optional<Decimal> number = parse_decimal(text);
  if (!number) return std::nullopt;
  std::string unit(number->end, text.data() + text.size());
  for (char& c : unit) c = char(std::toupper(static_cast<unsigned char>(c)));
  uint64_t factor = 1;
  if (!unit.empty() && unit != "B") {
    const size_t power = std::string_view("KMGT").find(unit[0]);
    const std::string tail = unit.substr(1);
    if (power == std::string_view::npos || (!tail.empty() && tail != "IB" && tail != "B"))
      return std::nullopt;
    for (size_t i = 0; i <= power; ++i) factor *= tail == "B" ? 1000 : 1024;
  }
  if (factor == 1 && number->fraction > 0) return std::nullopt;  // of a byte
  __extension__ using Wide = unsigned __int128;
  const Wide bytes =
      Wide(number->whole) * factor + Wide(number->fraction) * factor / number->fraction_of;
  if (bytes > std::numeric_limits<uint64_t>::max()) return std::nullopt;
  return uint64_t(bytes);
}

}  // namespace gxp
