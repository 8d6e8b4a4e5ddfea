// Bytes that are not UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "lib/text/unicode/text_view.h"

namespace gxp {

bool is_valid_utf8(std::string_view text);

// Appends the text with U+FFFD for each maximal subpart of an ill-formed sequence (the Unicode
// Standard 16, section 3.9), as Python's errors="replace" does.
void append_valid_utf8(std::string_view text, TextBuilder& out);
std::string with_valid_utf8(std::string_view text);

}  // namespace gxp
