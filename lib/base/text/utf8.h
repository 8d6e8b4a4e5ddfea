// Characters in UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gxp {

// The bytes of the character that `text` begins with; 0: it begins with none, or is empty.
// The Unicode Standard 15, table 3-7, which leaves out overlong forms, surrogates and what lies
// beyond U+10FFFF.
size_t utf8_length(std::string_view text);

// Whether the byte is one of a character's, but not its first.
constexpr bool continues_utf8(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// Text that begins with UTF-16's byte order mark, as PowerShell writes files, in UTF-8; text that
// begins with UTF-8's mark without it; other text as it is. Invalid sequences become U+FFFD.
std::string to_utf8(std::string text);

}  // namespace gxp
