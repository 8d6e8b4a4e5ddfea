// Python's two ways to format a text, as far as templates use them: %s, %d, %i and %f with flags, a
// width and a precision; {} and {name} alone.
#pragma once

#include <string>
#include <string_view>

#include "lib/text/jinja/function.h"

namespace gxp {

// format % values: a tuple has one value for each, a dict one for each name; anything else is the
// only one. JinjaError: Python refuses it, or it is not supported.
std::string percent_format(std::string_view format, const JinjaValue& values,
                           JinjaRendering& rendering);

// format.format(...), with the call's arguments. JinjaError: likewise.
std::string brace_format(std::string_view format, const JinjaCall& call);

}  // namespace gxp
