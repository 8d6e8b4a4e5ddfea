// Makes text from files and peers safe for a terminal or a log: control characters are shown, not
// obeyed.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

// Every byte of a control character (those of ASCII, DEL, U+0080 to U+009F) and every byte that is
// not UTF-8 becomes "\x1b"; all other text stays. So do the control characters of ASCII in `kept`,
// such as the "\n" of a message with several lines. The result is UTF-8.
std::string visible(std::string_view text, std::string_view kept = "");

}  // namespace gxp
