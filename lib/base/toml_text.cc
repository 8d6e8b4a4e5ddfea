#include "lib/base/toml_text.h"

#include <algorithm>

namespace gxp {
namespace {

std::string_view wrong_in_header(std::string_view line) {
  constexpr std::string_view kBlank = " \t";
  constexpr std::string_view kKeys =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_\"']";
  const auto skip_blank = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  };
  skip_blank();
  if (!line.starts_with('[')) return "";
  line.remove_prefix(line.starts_with("[[") ? 2 : 1);
  skip_blank();
  if (!line.empty() && kKeys.find(line[0]) != std::string_view::npos) return "";
  return "a name must follow '['";
}

std::string_view wrong_in_quotes(std::string_view line) {
  char quote = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quote != 0) {
      if (c == '\\' && quote == '"') ++at;
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '#') break;
    if (static_cast<unsigned char>(c) >= 0x80) return "letters beyond ASCII must stand in quotes";
    const std::string_view rest = line.substr(at);
    if (rest.starts_with("\"\"\"") || rest.starts_with("'''")) return "a text must be of one line";
    if (c == '"' || c == '\'') quote = c;
  }
  return "";
}

}  // namespace

std::optional<TomlFlaw> find_toml_flaw(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  int number = 1;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view line = text.substr(at, text.find_first_of("\n\r", at) - at);
    for (const std::string_view wrong : {wrong_in_header(line), wrong_in_quotes(line)}) {
      if (!wrong.empty()) return TomlFlaw{number, wrong};
    }
    at += line.size();
    if (at < text.size() && text[at] == '\n') ++number;
  }
  return std::nullopt;
}

}  // namespace gxp
