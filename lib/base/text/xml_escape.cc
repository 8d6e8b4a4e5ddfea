#include "lib/base/text/xml_escape.h"

#include "lib/base/text/utf8.h"

namespace gxp {
namespace {

// Control characters, U+FFFE and U+FFFF are no characters of XML 1.0.
bool is_in_xml(std::string_view character) {
  if (character.size() == 1)
    return static_cast<unsigned char>(character[0]) >= 0x20 || character == "\n";
  return character != "\xef\xbf\xbe" && character != "\xef\xbf\xbf";
}

}  // namespace

std::string escaped_for_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string safe_for_xml(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    safe += length > 0 && is_in_xml(character) ? character : "?";
    text.remove_prefix(character.size());
  }
  return escaped_for_xml(safe);
}

}  // namespace gxp
