#include "lib/base/text/visible_text.h"

#include <fmt/format.h>

#include "lib/base/text/utf8.h"

namespace gxp {
namespace {

bool is_control(std::string_view character) {
  const auto last = static_cast<unsigned char>(character.back());
  if (character.size() == 1) return last < 0x20 || last == 0x7f;
  return character.size() == 2 && character[0] == '\xc2' && last < 0xa0;
}

}  // namespace

std::string visible(std::string_view text, std::string_view kept) {
  std::string result;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
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
