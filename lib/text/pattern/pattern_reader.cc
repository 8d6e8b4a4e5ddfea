#include "lib/text/pattern/pattern_reader.h"

#include <algorithm>
#include <charconv>

#include "lib/base/text/utf8.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

constexpr size_t kMaxPatternBytes = 16384;
constexpr int kMaxClassDepth = 16;

bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// What a letter after a backslash stands for, where that is one character.
std::optional<char32_t> control_character(char32_t letter) {
  constexpr std::pair<char, char32_t> kControls[] = {{'t', 9},  {'n', 10}, {'v', 11}, {'f', 12},
                                                     {'r', 13}, {'a', 7},  {'e', 27}};
  for (const auto& [name, code] : kControls)
    if (char32_t(name) == letter) return code;
  return std::nullopt;
}

// One element of a class in brackets.
struct ClassItem {
  CodeSet set;
  std::optional<char32_t> character;
  bool has_case = false;
};

class ClassParser {
 public:
  explicit ClassParser(PatternReader& reader) : reader_(reader) {}

  BracketClass parse(int depth) {
    if (depth > kMaxClassDepth) reader_.refuse("it has classes in classes in classes");
    BracketClass all = {.set = {}, .is_negated = reader_.take("^")};
    CodeSet part;
    bool is_first = true, is_intersection = false;
    const auto close_part = [&] { all.set = is_intersection ? all.set.within(part) : part; };
    for (; is_first || !reader_.take("]"); is_first = false) {
      if (reader_.take("&&")) {
        close_part();
        is_intersection = true;
        part = {};
        all.is_plain = false;
        continue;
      }
      part = part.with(item_or_range(depth, all));
    }
    close_part();
    return all;
  }

 private:
  CodeSet item_or_range(int depth, BracketClass& all) {
    const ClassItem first = item(depth, all);
    if (!reader_.next_is("-") || reader_.next_is("-]")) return first.set;
    const size_t dash = reader_.place();
    reader_.take("-");
    if (reader_.next_is("&&") || reader_.next_is("["))
      reader_.refuse("it has a '-' before a class in a class");
    if (!first.character) reader_.refuse("it has a range that begins with a class");
    if (!reader_.is_oniguruma() && reader_.next_is("-"))
      reader_.refuse("it has a difference of classes");
    const ClassItem last = item(depth, all);
    if (!last.character || *last.character < *first.character) {
      reader_.go_to(dash);
      reader_.refuse("it has a range that ends before it begins, or with a class");
    }
    return CodeSet({{*first.character, *last.character}});
  }

  ClassItem item(int depth, BracketClass& all) {
    if (reader_.next_is("[:")) reader_.refuse("it has a POSIX class");
    if (!reader_.is_oniguruma() && (reader_.next_is("~~") || reader_.next_is("--")))
      reader_.refuse("it has a difference of classes");
    if (reader_.take("[")) {
      all.is_plain = false;
      const BracketClass inner = parse(depth + 1);
      return {inner.is_negated ? inner.set.complement() : inner.set, {}};
    }
    char32_t code = 0;
    if (reader_.take("\\")) {
      if (reader_.next_is("b")) reader_.refuse("it has \\b in a class");
      const bool is_word = reader_.next_is("w") || reader_.next_is("W");
      const bool is_negated = reader_.next_is("W");
      PatternReader::Escape escape = reader_.take_escape();
      if (is_word && reader_.is_oniguruma()) {
        const CodeSet word = CodeSet::of_class("word_in_class");
        escape.set = is_negated ? word.complement() : word;
      }
      if (escape.set) {
        if (escape.has_case) all.is_plain = false;
        return {std::move(*escape.set), {}};
      }
      if (!escape.character)
        reader_.refuse("it has \\{} in a class", char(reader_.take_character()));
      code = *escape.character;
    } else {
      code = reader_.take_character();
    }
    return {CodeSet({{code, code}}), code};
  }

  PatternReader& reader_;
};

}  // namespace

PatternReader::PatternReader(std::string_view pattern, PatternDialect dialect,
                             const std::string& where)
    : pattern_(pattern), dialect_(dialect), where_(where) {
  if (pattern.size() > kMaxPatternBytes)
    fail(ErrorKind::kConfig, "{}: a pattern has {} bytes; gxp takes {}", where, pattern.size(),
         kMaxPatternBytes);
  for (size_t at = 0; at < pattern.size();) {
    const size_t length = utf8_length(pattern.substr(at));
    if (length == 0) fail(ErrorKind::kCorrupt, "{}: a pattern is not UTF-8", where);
    at += length;
  }
}

bool PatternReader::take(std::string_view text) {
  if (!next_is(text)) return false;
  at_ += text.size();
  return true;
}

char32_t PatternReader::take_character() {
  if (at_end()) refuse("it ends too early");
  const Character character = character_at(pattern_, at_);
  at_ += character.length;
  return character.code;
}

std::string_view PatternReader::take_until(char end) {
  const size_t found = pattern_.find(end, at_);
  if (found == std::string_view::npos) refuse("it lacks a '{}'", end);
  const std::string_view taken = pattern_.substr(at_, found - at_);
  at_ = found + 1;
  return taken;
}

char32_t PatternReader::hexadecimal(std::string_view digits) const {
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || code > 0x10ffff ||
      (code >= 0xd800 && code < 0xe000))
    refuse("'{}' is no code point", digits);
  return code;
}

// After \p or \P.
CodeSet PatternReader::property() {
  std::string name;
  bool is_negated = false;
  if (take("{")) {
    is_negated = take("^");
    name = take_until('}');
  } else if (!is_oniguruma()) {
    append_character(name, take_character());
  } else {
    refuse("\\p without braces");
  }
  if (!is_oniguruma() && name.starts_with("Script=")) name.erase(0, 7);
  const bool is_public = !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
  CodeSet set = is_public ? CodeSet::of_class(name) : CodeSet();
  if (set.empty()) refuse("\\p{{{}}}", name);
  return is_negated ? set.complement() : set;
}

PatternReader::Escape PatternReader::take_escape() {
  const size_t start = at_;
  const char32_t code = take_character();
  const auto class_or_rest = [&](std::string_view name, char32_t letter) {
    CodeSet set = CodeSet::of_class(name);
    return Escape{{}, code == letter ? std::move(set) : set.complement(), name == "word"};
  };
  switch (code) {
    case 's':
    case 'S':
      return class_or_rest("space", 's');
    case 'd':
    case 'D':
      return class_or_rest("Nd", 'd');
    case 'w':
    case 'W': {
      Escape word = class_or_rest(is_oniguruma() ? "word" : "rust_word", 'w');
      word.has_case = true;
      return word;
    }
    case 'h':
    case 'H': {
      if (!is_oniguruma()) break;
      const CodeSet digits({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
      return {{}, code == 'h' ? digits : digits.complement(), true};
    }
    case 'p':
    case 'P': {
      const CodeSet set = property();
      return {{}, code == 'p' ? set : set.complement(), true};
    }
    case 'x':
      if (take("{")) return {hexadecimal(take_until('}')), {}};
      at_ = std::min(at_ + 2, pattern_.size());
      return {hexadecimal(pattern_.substr(start + 1, at_ - start - 1)), {}};
    case 'u':
      at_ = std::min(at_ + 4, pattern_.size());
      return {hexadecimal(pattern_.substr(start + 1, at_ - start - 1)), {}};
    default:
      if (const auto control = control_character(code)) return {control, {}};
      if (code < 0x80 && !is_word_byte(char(code))) return {code, {}};
  }
  at_ = start;
  return {};
}

BracketClass take_bracket_class(PatternReader& reader) { return ClassParser(reader).parse(0); }

}  // namespace gxp
