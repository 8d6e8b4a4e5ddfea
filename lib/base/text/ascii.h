// Text by ASCII's letters and blanks, whatever the locale.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

std::string lower_case(std::string_view text);
// Without the spaces, tabs and line ends around it; a part of `text`.
std::string_view trimmed(std::string_view text);

}  // namespace gxp
