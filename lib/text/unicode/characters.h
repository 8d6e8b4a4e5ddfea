// Characters (Unicode scalar values) of text that is valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gxp {

struct Character {
  char32_t code = 0;
  uint32_t length = 0;  // bytes
};

// The character that begins at `at`, which is within the text.
inline Character character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return char32_t(static_cast<unsigned char>(text[at + i])); };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xe0) return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (first < 0xf0) return {(first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(first & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

// Where the character that ends at `end` begins; end > 0.
inline size_t character_before(std::string_view text, size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80);
  return end;
}

inline void append_character(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += char(code);
    return;
  }
  if (code < 0x800) {
    text += char(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      text += char(0xe0 | code >> 12);
    } else {
      text += char(0xf0 | code >> 18);
      text += char(0x80 | (code >> 12 & 0x3f));
    }
    text += char(0x80 | (code >> 6 & 0x3f));
  }
  text += char(0x80 | (code & 0x3f));
}

}  // namespace gxp
