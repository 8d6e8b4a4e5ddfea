#include "lib/base/text/utf8.h"

#include <cstdint>

namespace gxp {

size_t utf8_length(std::string_view text) {
  const auto is_within = [text](size_t at, unsigned low, unsigned high) {
    const unsigned byte = at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
    return byte >= low && byte <= high;
  };
  if (is_within(0, 0, 0x7f)) return 1;
  const size_t length = is_within(0, 0xc2, 0xdf)   ? 2
                        : is_within(0, 0xe0, 0xef) ? 3
                        : is_within(0, 0xf0, 0xf4) ? 4
                                                   : 0;
  const unsigned low = text.starts_with('\xe0') ? 0xa0 : text.starts_with('\xf0') ? 0x90 : 0x80;
  const unsigned high = text.starts_with('\xed') ? 0x9f : text.starts_with('\xf4') ? 0x8f : 0xbf;
  if (length == 0 || !is_within(1, low, high)) return 0;
  for (size_t at = 2; at < length; ++at) {
    if (!is_within(at, 0x80, 0xbf)) return 0;
  }
  return length;
}

namespace {

void append_utf8(std::string& text, uint32_t character) {
  const auto byte = [&](uint32_t first, uint32_t bits) { text += char(first | bits); };
  if (character < 0x80) return byte(0, character);
  if (character < 0x800) {
    byte(0xc0, character >> 6);
  } else {
    if (character < 0x10000) {
      byte(0xe0, character >> 12);
    } else {
      byte(0xf0, character >> 18);
      byte(0x80, character >> 12 & 0x3f);
    }
    byte(0x80, character >> 6 & 0x3f);
  }
  byte(0x80, character & 0x3f);
}

}  // namespace

std::string to_utf8(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) return text.substr(3);
  const bool is_little = text.starts_with("\xff\xfe");
  if (!is_little && !text.starts_with("\xfe\xff")) return text;
  const auto unit = [&](size_t at) -> uint32_t {
    if (at + 1 >= text.size()) return 0xfffd;
    const auto low = static_cast<unsigned char>(text[at + (is_little ? 0 : 1)]);
    const auto high = static_cast<unsigned char>(text[at + (is_little ? 1 : 0)]);
    return uint32_t(high) << 8 | low;
  };
  const auto is_within = [](uint32_t value, uint32_t low) { return value >> 10 == low >> 10; };
  std::string converted;
  for (size_t at = 2; at < text.size(); at += 2) {
    uint32_t character = unit(at);
    if (is_within(character, 0xd800) && at + 2 < text.size() && is_within(unit(at + 2), 0xdc00)) {
      character = 0x10000 + ((character & 0x3ff) << 10) + (unit(at + 2) & 0x3ff);
      at += 2;
    } else if (character >> 11 == 0xd800 >> 11) {
      character = 0xfffd;  // half of a pair
    }
    append_utf8(converted, character);
  }
  return converted;
}

}  // namespace gxp
