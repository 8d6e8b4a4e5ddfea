#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/base/text/utf8.h"
#include "lib/tools/imports/syntax.h"

namespace gxp {
namespace {

class HjsonReader {
 public:
  HjsonReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  SourceTree read() {
    skip();
    if (peek() != '{') wrong("an object was expected");
    SourceTree root = read_value(0);
    skip();
    if (at_ < text_.size()) wrong("there is text behind the last '}'");
    return root;
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    const auto end = text_.begin() + ptrdiff_t(std::min(at_, text_.size()));
    const auto line = 1 + std::count(text_.begin(), end, '\n');
    if (at_ >= text_.size())
      fail(ErrorKind::kConfig, "{}:{}: the file is cut off: {}", path_, line, what);
    fail(ErrorKind::kConfig, "{}:{}: {}", path_, line, what);
  }

  // '\0' at the end: a NUL in the text is refused where a value is read.
  [[nodiscard]] char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool is_at(std::string_view what) const {
    return text_.substr(std::min(at_, text_.size())).starts_with(what);
  }
  void skip_to(std::string_view what) { at_ = std::min(text_.find(what, at_), text_.size()); }

  // Blanks and comments.
  void skip() {
    while (at_ < text_.size()) {
      if (std::string_view(" \t\r\n").find(peek()) != std::string_view::npos) {
        ++at_;
      } else if (peek() == '#' || is_at("//")) {
        skip_to("\n");
      } else if (is_at("/*")) {
        skip_to("*/");
        if (at_ == text_.size()) wrong("a comment is not closed");
        at_ += 2;
      } else {
        return;
      }
    }
  }

  SourceTree read_value(int depth) {
    if (depth > kMaxSourceDepth) wrong(fmt::format("nested deeper than {}", kMaxSourceDepth));
    switch (peek()) {
      case '{':
        return read_object(depth);
      case '[':
        return read_list(depth);
      case '"':
        return read_quoted();
      case '\'':
        return is_at("'''") ? read_lines() : read_quoted();
      default:
        return read_bare();
    }
  }

  SourceTree read_object(int depth) {
    SourceTree object = SourceTree::object();
    ++at_;
    for (skip(); peek() != '}'; skip()) {
      const std::string key = read_key();
      skip();
      if (peek() != ':') wrong(fmt::format("':' was expected behind the key '{}'", key));
      ++at_;
      skip();
      if (object.contains(key))
        wrong(fmt::format("the key '{}' occurs twice; DeepSpeed refuses duplicate keys", key));
      object[key] = read_value(depth + 1);
      skip();
      if (peek() == ',') ++at_;
    }
    ++at_;
    return object;
  }

  SourceTree read_list(int depth) {
    SourceTree list = SourceTree::array();
    ++at_;
    for (skip(); peek() != ']'; skip()) {
      if (at_ >= text_.size()) wrong("']' is missing");
      list.push_back(read_value(depth + 1));
      skip();
      if (peek() == ',') ++at_;
    }
    ++at_;
    return list;
  }

  std::string read_key() {
    if (at_ >= text_.size()) wrong("'}' is missing");
    if (peek() == '"' || peek() == '\'') return read_quoted();
    const size_t end = std::min(text_.find_first_of(" \t\r\n,:[]{}\"", at_), text_.size());
    if (end == at_) wrong("a key was expected");
    const std::string key(text_.substr(at_, end - at_));
    at_ = end;
    return key;
  }

  std::string read_quoted() {
    const char quote = peek();
    std::string value;
    for (++at_; peek() != quote; ++at_) {
      if (at_ >= text_.size() || peek() == '\n') wrong("a string is not closed");
      value += peek() == '\\' ? read_escape() : std::string(1, peek());
    }
    ++at_;
    return value;
  }

  // Leaves at_ on its last character.
  std::string read_escape() {
    constexpr std::string_view kEscapes = "\"'\\/bfnrt";
    constexpr std::string_view kMeant = "\"'\\/\b\f\n\r\t";
    const char c = peek(1);
    const size_t known = c == '\0' ? std::string_view::npos : kEscapes.find(c);
    if (known != std::string_view::npos) {
      ++at_;
      return std::string(1, kMeant[known]);
    }
    // A string in JSON syntax; the parser knows surrogates.
    const size_t length = c != 'u' ? 2 : is_high_surrogate(at_) ? 12 : 6;
    const std::string escape = fmt::format("\"{}\"", text_.substr(at_, length));
    const SourceTree parsed = SourceTree::parse(escape, nullptr, false);
    if (!parsed.is_string()) wrong("an escape in a string is not JSON's");
    at_ += length - 1;
    return parsed.get<std::string>();
  }

  // "\ud8.." to "\udb..", which another escape follows.
  [[nodiscard]] bool is_high_surrogate(size_t at) const {
    const std::string begin = lower_case(text_.substr(at, 4));
    return begin.starts_with("\\ud") && begin >= "\\ud8" && begin <= "\\udb";
  }

  // Between ''' and '''; the blanks that the first line is indented by are left out of every line.
  std::string read_lines() {
    const size_t line_begin = text_.rfind('\n', at_) + 1;  // npos + 1 is 0
    const size_t indent = at_ - line_begin;
    at_ += 3;
    const size_t end = text_.find("'''", at_);
    std::string_view body = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 3;
    if (end == std::string_view::npos) wrong("a string of several lines is not closed");
    if (const size_t first = body.find('\n'); trimmed(body.substr(0, first)).empty())
      body.remove_prefix(first == std::string_view::npos ? body.size() : first + 1);
    std::string value;
    while (!body.empty()) {
      const size_t stop = std::min(body.find('\n'), body.size());
      std::string_view line = body.substr(0, stop);
      const size_t blanks = std::min(line.find_first_not_of(" \t"), line.size());
      line.remove_prefix(std::min(blanks, indent));
      value += std::string(line) + (stop < body.size() ? "\n" : "");
      body.remove_prefix(std::min(stop + 1, body.size()));
    }
    if (value.ends_with('\n')) value.pop_back();
    return value;
  }

  // A number, true, false or null up to a ',', a bracket, a comment or the line's end; else all of
  // the line is a string.
  SourceTree read_bare() {
    const size_t line_end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, line_end - at_);
    if (line.empty() || std::string_view(",:]}\0", 5).find(line[0]) != std::string_view::npos)
      wrong("a value was expected");
    size_t stop = std::min(line.find_first_of(",]}#"), line.size());
    stop = std::min({stop, line.find("//"), line.find("/*")});
    const std::string_view word = trimmed(line.substr(0, stop));
    if (word == "NaN" || word == "Infinity" || word == "-Infinity")
      wrong(fmt::format("{} is no number in JSON", word));
    if (auto value = to_literal(word)) {
      at_ += stop;
      return *value;
    }
    at_ = line_end;
    return SourceTree(std::string(trimmed(line)));
  }

  static std::optional<SourceTree> to_literal(std::string_view word) {
    const SourceTree value = SourceTree::parse(word, nullptr, false);
    if (!value.is_primitive() || value.is_string()) return std::nullopt;
    return value;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

}  // namespace

SourceTree parse_hjson(std::string_view text, const std::string& path) {
  return HjsonReader(text, path).read();
}

}  // namespace gxp
