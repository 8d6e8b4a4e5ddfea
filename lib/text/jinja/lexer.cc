#include "lib/text/jinja/lexer.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "lib/text/jinja/python_text.h"
#include "lib/text/jinja/value.h"

namespace gxp {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return begins_name(c) || is_digit(c); }

// Every line end as "\n", without the last one.
std::string with_plain_lines(std::string_view source) {
  std::string plain;
  plain.reserve(source.size());
  for (size_t at = 0; at < source.size(); ++at) {
    if (source[at] == '\r' && at + 1 < source.size() && source[at + 1] == '\n') continue;
    plain += source[at] == '\r' ? '\n' : source[at];
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

void append_character(std::string& text, uint32_t code) {
  if (code >= 0xd800 && (code < 0xe000 || code > 0x10ffff))
    jinja_fail("a string has an escape of no character, U+{:X}", code);
  if (code < 0x80) {
    text += char(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  text += char(kFirst[more] | code >> (6 * more));
  for (int rest = more - 1; rest >= 0; --rest) text += char(0x80 | (code >> (6 * rest) & 0x3f));
}

// The value of a string, given what is between its quotes: Python's escapes.
std::string unescaped(std::string_view raw) {
  std::string text;
  const auto append_number = [&](size_t at, size_t digits, int base) {
    uint32_t code = 0;
    const char* begin = raw.data() + at;
    const size_t available = std::min(digits, raw.size() - at);
    const auto result = std::from_chars(begin, begin + available, code, base);
    const auto read = size_t(result.ptr - begin);
    if (read == 0 || (base == 16 && read < digits)) jinja_fail("a string has a broken escape");
    append_character(text, code);
    return at + read;
  };
  for (size_t at = 0; at < raw.size();) {
    if (raw[at] != '\\') {
      text += raw[at++];
      continue;
    }
    const char c = raw[at + 1];  // a string does not end in a lone backslash
    at += 2;
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    if (const size_t known = kNames.find(c); known != std::string_view::npos) {
      text += "\\'\"\a\b\f\n\r\t\v"[known];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      at = append_number(at, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    } else if (c >= '0' && c <= '7') {
      at = append_number(at - 1, 3, 8);
    } else if (c == 'N' || static_cast<unsigned char>(c) >= 0x80) {
      jinja_fail("the escape '\\{}' in a string is not supported", c == 'N' ? "N" : "(not ASCII)");
    } else if (c != '\n') {
      text += {'\\', c};  // Python keeps an escape that it does not know
    }
  }
  return text;
}

class JinjaLexer {
 public:
  JinjaLexer(std::string_view source, int& line) : source_(source), line_(line) { line_ = 1; }

  std::vector<JinjaToken> run() {
    while (at_ < source_.size()) read_data();
    push(JinjaTokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return source_.substr(at_); }
  [[nodiscard]] bool sees(std::string_view what) const { return rest().starts_with(what); }
  void push(JinjaTokenKind kind, std::string_view text) {
    tokens_.push_back({kind, std::string(text), line_});
  }

  void skip(size_t bytes) {
    const std::string_view part = rest().substr(0, bytes);
    line_ += int(std::ranges::count(part, '\n'));
    at_ += part.size();
    begins_line_ = part.ends_with('\n');
  }

  // Whether a tag ends here; if so, goes past it and what its sign removes.
  bool skip_end(std::string_view end, bool trims) {
    if (sees(end)) {
      skip(end.size());
      if (trims && sees("\n")) skip(1);
      return true;
    }
    const bool strips = sees("-");
    if ((!strips && !(trims && sees("+"))) || !rest().substr(1).starts_with(end)) return false;
    skip(1 + end.size());
    if (const size_t space = strips ? leading_space(rest()) : 0; space > 0) skip(space);
    return true;
  }

  // What a tag with this sign leaves of the text before it.
  [[nodiscard]] std::string_view shortened(std::string_view text, char sign, bool is_print) const {
    if (sign == '-') return stripped(text, Sides::kRight);
    if (sign == '+' || is_print) return text;
    const size_t begin = text.rfind('\n') + 1;  // 0: there is none
    const bool is_blank = stripped(text.substr(begin), Sides::kLeft).empty();
    return is_blank && (begin > 0 || begins_line_) ? text.substr(0, begin) : text;
  }

  void push_data(std::string_view text) {
    if (!text.empty()) push(JinjaTokenKind::kData, text);
  }

  // The bytes of "{% NAME %}" with its signs, if that is here; its end may be followed by more.
  [[nodiscard]] size_t length_to_tag_end(std::string_view text, std::string_view name) const {
    std::string_view tag = text.substr(2);
    if (tag.starts_with('-') || tag.starts_with('+')) tag.remove_prefix(1);
    tag.remove_prefix(leading_space(tag));
    if (!tag.starts_with(name)) return 0;
    tag.remove_prefix(name.size());
    tag.remove_prefix(leading_space(tag));
    const bool ends = tag.starts_with("%}") || tag.starts_with("-%}") || tag.starts_with("+%}");
    return ends ? size_t(tag.data() - text.data()) : 0;
  }

  // The text up to the next tag, and that tag.
  void read_data() {
    size_t begin = source_.find('{', at_);
    const auto is_tag = [&](size_t at) {
      return at + 1 < source_.size() &&
             std::string_view("%{#").find(source_[at + 1]) != std::string_view::npos;
    };
    while (begin != std::string_view::npos && !is_tag(begin)) begin = source_.find('{', begin + 1);
    if (begin == std::string_view::npos) {
      push_data(rest());
      return skip(rest().size());
    }
    const std::string_view tag = source_.substr(begin);
    const char sign = tag.size() > 2 && (tag[2] == '-' || tag[2] == '+') ? tag[2] : ' ';
    const bool is_print = tag[1] == '{';
    push_data(shortened(source_.substr(at_, begin - at_), sign, is_print));
    skip(begin - at_);
    if (const size_t raw = tag[1] == '%' ? length_to_tag_end(tag, "raw") : 0; raw > 0)
      return read_raw(raw);
    skip(sign == ' ' ? 2 : 3);
    if (tag[1] == '#') return read_comment();
    read_code(is_print);
  }

  void read_comment() {
    while (!skip_end("#}", true)) {
      if (at_ >= source_.size()) jinja_fail("a comment does not end");
      skip(1);
    }
  }

  void read_raw(size_t length) {
    skip(length);
    if (!skip_end("%}", false)) jinja_fail("'+' at the end of {{% raw %}} is not supported");
    const size_t begin = at_;
    const bool begins_line = begins_line_;
    while (at_ < source_.size()) {
      const size_t end = sees("{%") ? length_to_tag_end(rest(), "endraw") : 0;
      if (end > 0) {
        const char sign = rest()[2] == '-' || rest()[2] == '+' ? rest()[2] : ' ';
        begins_line_ = begins_line;
        push_data(shortened(source_.substr(begin, at_ - begin), sign, false));
        skip(end);
        skip_end("%}", true);
        return;
      }
      skip(1);
    }
    jinja_fail("{{% raw %}} does not end");
  }

  void read_code(bool is_print) {
    push(is_print ? JinjaTokenKind::kPrintBegin : JinjaTokenKind::kBlockBegin, "");
    std::string brackets;  // those that are open, as their ends
    while (at_ < source_.size()) {
      const int line = line_;
      if (brackets.empty() && skip_end(is_print ? "}}" : "%}", !is_print)) {
        push(is_print ? JinjaTokenKind::kPrintEnd : JinjaTokenKind::kBlockEnd, "");
        tokens_.back().line = line;
        return;
      }
      read_token(brackets);
    }
  }

  void read_token(std::string& brackets) {
    const char c = rest()[0];
    if (const size_t space = leading_space(rest()); space > 0) return skip(space);
    if (is_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string(c);
    if (begins_name(c)) {
      size_t length = 1;
      while (length < rest().size() && continues_name(rest()[length])) ++length;
      push(JinjaTokenKind::kName, rest().substr(0, length));
      return skip(length);
    }
    read_operator(brackets);
  }

  void read_number() {
    const auto digits_from = [this](size_t from) {
      size_t end = from;
      while (end < rest().size() && is_digit(rest()[end])) ++end;
      return end;
    };
    const auto sees_at = [this](size_t at, std::string_view any) {
      return at < rest().size() && any.find(rest()[at]) != std::string_view::npos;
    };
    const bool follows_dot = at_ > 0 && source_[at_ - 1] == '.';
    const size_t whole = digits_from(0);
    size_t end = whole;
    if (!follows_dot && sees_at(end, ".") && digits_from(end + 1) > end + 1)
      end = digits_from(end + 1);
    if (!follows_dot && sees_at(end, "eE")) {
      const size_t digits = end + (sees_at(end + 1, "+-") ? 2 : 1);
      if (digits_from(digits) > digits) end = digits_from(digits);
    }
    const std::string_view number = rest().substr(0, end);
    const bool has_zeros = end == whole && number.size() > 1 && number[0] == '0';
    if (has_zeros || (end < rest().size() && continues_name(rest()[end])))
      jinja_fail("numbers written like {}... are not supported", rest().substr(0, end + 1));
    push(end == whole ? JinjaTokenKind::kInteger : JinjaTokenKind::kFloat, number);
    skip(end);
  }

  void read_string(char quote) {
    size_t end = 1;
    while (end < rest().size() && rest()[end] != quote) end += rest()[end] == '\\' ? 2 : 1;
    if (end >= rest().size()) jinja_fail("a string does not end");
    push(JinjaTokenKind::kText, unescaped(rest().substr(1, end - 1)));
    skip(end + 1);
  }

  void read_operator(std::string& brackets) {
    const std::string_view two = rest().substr(0, 2);
    const bool is_long =
        two == "//" || two == "**" || two == "==" || two == "!=" || two == ">=" || two == "<=";
    const std::string_view name = rest().substr(0, is_long ? 2 : 1);
    const char c = name[0];
    if (!is_long && std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos)
      jinja_fail("a character is unexpected: {}", characters_of(rest().substr(0, 4))[0]);
    constexpr std::string_view kOpen = "([{";
    constexpr std::string_view kClose = ")]}";
    if (const size_t open = kOpen.find(c); open != std::string_view::npos) {
      brackets += kClose[open];
    } else if (kClose.find(c) != std::string_view::npos) {
      if (brackets.empty() || brackets.back() != c) jinja_fail("'{}' is unexpected", c);
      brackets.pop_back();
    }
    push(JinjaTokenKind::kOperator, name);
    skip(name.size());
  }

  std::string_view source_;
  int& line_;
  size_t at_ = 0;
  bool begins_line_ = true;  // what was skipped last ends in a line end
  std::vector<JinjaToken> tokens_;
};

}  // namespace

std::vector<JinjaToken> tokenize_jinja(std::string_view source, int& line) {
  return JinjaLexer(with_plain_lines(source), line).run();
}

}  // namespace gxp
