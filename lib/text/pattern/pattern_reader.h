// What the parts of the translation of a pattern share: the place in it, and how it is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/text/pattern/pattern_dialect.h"
#include "lib/text/unicode/code_set.h"

namespace gxp {

class PatternReader {
 public:
  // Both texts outlive it.
  PatternReader(std::string_view pattern, PatternDialect dialect, const std::string& where);

  [[nodiscard]] bool is_oniguruma() const { return dialect_ == PatternDialect::kOniguruma; }
  [[nodiscard]] bool at_end() const { return at_ == pattern_.size(); }
  [[nodiscard]] bool next_is(std::string_view text) const {
    return pattern_.substr(at_).starts_with(text);
  }
  // Goes past `text` if it is next.
  bool take(std::string_view text);
  // The next character; refused at the end.
  char32_t take_character();
  // Up to `end`, which is passed, too.
  std::string_view take_until(char end);
  [[nodiscard]] size_t place() const { return at_; }
  void go_to(size_t place) { at_ = place; }

  // What a backslash, which has been passed, and what follows stand for: one character, or a set.
  // Neither: an escape that is no character, such as an anchor; it is then still ahead.
  struct Escape {
    std::optional<char32_t> character;
    std::optional<CodeSet> set;
    bool has_case = false;  // of a set
  };
  Escape take_escape();

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::kConfig, "{}: the pattern {}: {}, which gxp does not match as its library does",
         where_, pattern_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  CodeSet property();
  char32_t hexadecimal(std::string_view digits) const;

  std::string_view pattern_;
  PatternDialect dialect_;
  const std::string& where_;
  size_t at_ = 0;
};

// A class in brackets; the first of them has been passed.
struct BracketClass {
  CodeSet set;              // without what is in `is_negated`
  bool is_negated = false;  // all but the set
  bool is_plain = true;     // only of characters without classes in it
};
BracketClass take_bracket_class(PatternReader& reader);

}  // namespace gxp
