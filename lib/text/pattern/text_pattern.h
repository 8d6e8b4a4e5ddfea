// A regular expression that cuts text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/pattern/pattern_dialect.h"

namespace gxp {

// A part of a text: bytes [begin, end), matched or between matches.
struct TextSegment {
  size_t begin = 0, end = 0;
  bool is_match = false;
};

// Memory of a match, for one thread at a time.
class MatchMemory {
 public:
  MatchMemory();
  ~MatchMemory();
  MatchMemory(const MatchMemory&) = delete;
  MatchMemory& operator=(const MatchMemory&) = delete;

 private:
  friend class TextPattern;
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

class TextPattern {
 public:
  // kConfig: it is refused (pattern_dialect.h), or PCRE2 does. kUnavailable: PCRE2 lacks Unicode.
  TextPattern(std::string_view pattern, PatternDialect dialect, const std::string& where);
  ~TextPattern();
  TextPattern(const TextPattern&) = delete;
  TextPattern& operator=(const TextPattern&) = delete;

  // Whether some text may make it match nothing.
  [[nodiscard]] bool may_match_empty() const;

  // Appends the matches, from the left, each the first alternative that succeeds, and what lies
  // between them; together they are all of the text, which is valid UTF-8. A match may be empty; it
  // never follows another at once. kConfig: the pattern needs more steps or memory than gxp allows.
  // Threads: any, each with its own memory.
  void cut(std::string_view text, MatchMemory& memory, std::vector<TextSegment>& out) const;

 private:
  struct Code;
  std::string where_;
  std::string pattern_;
  std::unique_ptr<Code> code_;
};

}  // namespace gxp
