#include "lib/base/visible_text.h"

#include <fmt/format.h>

namespace gxp {
namespace {

// The length of the character that `text` begins with; 0: it is no UTF-8. The Unicode Standard 15,
// table 3-7, which leaves out overlong forms, surrogates and what is beyond U+10FFFF.
size_t character_length(std::string_view text) {
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

bool is_control(std::string_view character) {
  const auto last = static_cast<unsigned char>(character.back());
  if (character.size() == 1) return last < 0x20 || last == 0x7f;
  return character.size() == 2 && character[0] == '\xc2' && last < 0xa0;
}

}  // namespace

std::string visible(std::string_view text, std::string_view kept) {
  std::string result;
  while (!text.empty()) {
    const size_t length = character_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    const bool stays =
        length > 0 && (!is_control(character) || kept.find(character) != std::string_view::npos);
    if (stays) result += character;
    for (size_t at = 0; !stays && at < character.size(); ++at)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(character[at]));
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace gxp
