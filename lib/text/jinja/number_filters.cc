#include "lib/text/jinja/number_filters.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "lib/text/jinja/operators.h"
#include "lib/text/jinja/python_text.h"

namespace gxp {
namespace {

// As Python's int() or float() of a text.
template <class Number>
std::optional<Number> parse_python_number(std::string_view text) {
  text = stripped(text, Sides::kBoth);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  Number value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range || text.find('_') != std::string_view::npos)
    jinja_fail("the number in '{}' is not supported", text.substr(0, 100));
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> truncated(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::abs(value) >= 9.2e18) jinja_fail("a whole number is beyond 64 bits");
  return int64_t(value);
}

void check_is_defined(const JinjaValue& value) {
  if (value.undefined() != nullptr) attribute_of(value, "int");  // says what is undefined
}

// round(value, places): to the nearest decimal, and to the even one of two, as C prints it.
double rounded(double value, int64_t places) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), "%.*f", int(places), value);
  return std::strtod(text.data(), nullptr);
}

// math.ceil(value * 10**places) / 10**places, or floor.
JinjaValue rounded_to_side(const JinjaValue& value, int64_t places, bool is_up) {
  constexpr double kExact = double(int64_t{1} << std::numeric_limits<double>::digits);
  const double scale = std::pow(10.0, double(places));
  const double scaled = *value.number() * scale;
  if (!std::isfinite(scaled) || std::abs(scaled) >= kExact)
    jinja_fail("rounding a number of this size is not supported");
  const auto whole = int64_t(is_up ? std::ceil(scaled) : std::floor(scaled));  // without -0.0
  return double(whole) / scale;
}

}  // namespace

std::optional<int64_t> parse_jinja_integer(std::string_view text) {
  return parse_python_number<int64_t>(text);
}

JinjaValue filter_int(const JinjaCall& call, const JinjaArguments& arguments) {
  check_is_defined(call.subject);
  if (arguments.integer(1, 10) != 10) jinja_fail("int with another base is not supported");
  const JinjaValue otherwise = arguments[0] == nullptr ? JinjaValue(0) : *arguments[0];
  std::optional<int64_t> value = call.subject.integer();
  if (!value && call.subject.number()) value = truncated(*call.subject.number());
  if (const std::string* text = call.subject.text()) {
    value = parse_jinja_integer(*text);
    const std::optional<double> real = value ? std::nullopt : parse_python_number<double>(*text);
    if (real) value = truncated(*real);
  }
  return value ? JinjaValue(*value) : otherwise;
}

JinjaValue filter_float(const JinjaCall& call, const JinjaArguments& arguments) {
  check_is_defined(call.subject);
  std::optional<double> value = call.subject.number();
  if (const std::string* text = call.subject.text()) value = parse_python_number<double>(*text);
  if (value) return *value;
  return arguments[0] == nullptr ? JinjaValue(0.0) : *arguments[0];
}

JinjaValue filter_abs(const JinjaCall& call, const JinjaArguments&) {
  const bool is_negative = call.subject.number() && *call.subject.number() < 0;
  if (is_negative || !call.subject.number()) return negated(call.subject);
  return call.subject.is_bool() ? JinjaValue(*call.subject.integer()) : call.subject;
}

JinjaValue filter_round(const JinjaCall& call, const JinjaArguments& arguments) {
  const int64_t places = arguments.integer(0, 0);
  const std::string_view method = arguments.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor")
    jinja_fail("round is by 'common', 'ceil' or 'floor', not '{}'", method);
  check_is_defined(call.subject);
  if (!call.subject.number()) jinja_fail("round does not take a {}", kind_of(call.subject));
  if (places < 0 || places > 15) jinja_fail("round to {} places is not supported", places);
  if (method != "common") return rounded_to_side(call.subject, places, method == "ceil");
  if (call.subject.integer()) return *call.subject.integer();
  return rounded(*call.subject.number(), places);
}

}  // namespace gxp
