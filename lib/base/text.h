// Small changes to text, of ASCII's letters and blanks whatever the locale.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

std::string lower_case(std::string_view text);
// Without the spaces, tabs and ends of lines around it; a part of `text`.
std::string_view trimmed(std::string_view text);
// As it may stand in an element or a quoted attribute of XML. Bytes that XML forbids stay.
std::string escaped_for_xml(std::string_view text);
// "1 host", "2 hosts", "3 switches".
std::string count_of(size_t count, std::string_view what);

}  // namespace gxp
