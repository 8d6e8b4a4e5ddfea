// The filters of numbers, and numbers in texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/text/jinja/function.h"

namespace gxp {

// int(text, 10): blanks around, a sign, and digits. Empty: it is none. JinjaError: it is beyond 64
// bits, or has Python's underscores.
std::optional<int64_t> parse_jinja_integer(std::string_view text);

JinjaValue filter_abs(const JinjaCall& call, const JinjaArguments& arguments);
JinjaValue filter_float(const JinjaCall& call, const JinjaArguments& arguments);
JinjaValue filter_int(const JinjaCall& call, const JinjaArguments& arguments);
JinjaValue filter_round(const JinjaCall& call, const JinjaArguments& arguments);

}  // namespace gxp
