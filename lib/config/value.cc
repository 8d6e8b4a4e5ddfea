#include "lib/config/value.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace gxp {
namespace {

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    auto code = static_cast<unsigned char>(c);
    if (c == '\xc2' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0)
      code = static_cast<unsigned char>(text[++at]);  // U+0080 to U+009F, which terminals obey
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
      quoted += fmt::format("\\u{:04X}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

struct ToToml {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const {
    std::string text = fmt::format("{}", value);  // the shortest digits that read back exactly
    const bool integral = std::isfinite(value) && text.find_first_of(".e") == std::string::npos;
    return integral ? text + ".0" : text;
  }
  std::string operator()(const std::string& value) const { return quote(value); }
  std::string operator()(const std::vector<std::string>& values) const {
    std::string text = "[";
    for (const std::string& value : values) text += (text.size() > 1 ? ", " : "") + quote(value);
    return text + "]";
  }
};

}  // namespace

std::string to_toml(const Value& value) { return std::visit(ToToml{}, value); }

}  // namespace gxp
