#include "lib/base/text/toml_text.h"

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

constexpr std::string_view kBeyondAscii = "non-ASCII letters must be quoted";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-+.:").find(c) != std::string_view::npos;
}

// The length of the quoted text that `line` begins with, to the line's end if it is not closed.
size_t quoted_length(std::string_view line) {
  for (size_t at = 1; at < line.size(); ++at) {
    if (line[at] == line[0]) return at + 1;
    if (line[0] == '"' && line[at] == '\\') ++at;
  }
  return line.size();
}

// Whether quotes open a text wherever they stand, as toml++ sees it, and letters beyond ASCII stand
// in such texts alone: of KEY = VALUE, lists and inline tables each part is where it may be.
bool has_plain_order(std::string_view line) {
  enum { kStart, kKey, kValue, kDone } state = kStart;
  while (!line.empty() && line[0] != '#') {
    const char c = line[0];
    size_t length = 1;
    if (c == '"' || c == '\'' || is_word(c)) {
      if (state == kKey || state == kDone) return false;
      state = state == kStart ? kKey : kDone;
      while (is_word(c) && length < line.size() && is_word(line[length])) ++length;
      if (!is_word(c)) length = quoted_length(line);
    } else if (c == '=') {
      if (state != kKey) return false;
      state = kValue;
    } else if (c == ',') {
      state = kStart;
    } else if (c == '[' || c == '{') {
      if (state == kKey || state == kDone) return false;
      state = kStart;
    } else if (c == ']' || c == '}') {
      state = kDone;
    } else if (c != ' ' && c != '\t') {
      return false;
    }
    line.remove_prefix(length);
  }
  return true;
}

// 256 inline tables, one in the other, with keys of as many parts are 2,304 tables.
constexpr int kMaxDots = 8;

// Between any two of the characters that begin or end a key.
bool has_deep_key(std::string_view line) {
  int dots = 0;
  while (!line.empty() && line[0] != '#') {
    const char c = line[0];
    if (c == '.' && ++dots > kMaxDots) return true;
    if (std::string_view("=,[]{}").find(c) != std::string_view::npos) dots = 0;
    line.remove_prefix(c == '"' || c == '\'' ? quoted_length(line) : 1);
  }
  return false;
}

std::string_view wrong_in_keys(std::string_view line) {
  return has_deep_key(line) ? "a key may have 9 parts at most" : "";
}

std::string_view wrong_in_quotes(std::string_view line) {
  const std::string_view code = line.substr(0, line.find('#'));
  for (const char* const quotes : {"\"\"\"", "'''"}) {
    if (code.find(quotes) != std::string_view::npos) return "a string must be on one line";
  }
  const bool is_ascii =
      std::ranges::all_of(line, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return is_ascii || has_plain_order(line) ? "" : kBeyondAscii;
}

}  // namespace

std::optional<TomlFlaw> find_toml_flaw(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  int number = 1;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view line = text.substr(at, text.find_first_of("\n\r", at) - at);
    for (const std::string_view wrong :
         {wrong_in_header(line), wrong_in_keys(line), wrong_in_quotes(line)}) {
      if (!wrong.empty()) return TomlFlaw{number, wrong};
    }
    at += line.size();
    if (at < text.size() && text[at] == '\n') ++number;
  }
  return std::nullopt;
}

}  // namespace gxp
