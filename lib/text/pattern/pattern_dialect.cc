#include "lib/text/pattern/pattern_dialect.h"

#include <algorithm>
#include <array>

#include "lib/text/pattern/pattern_reader.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

constexpr int kMaxGroupDepth = 64;
constexpr int kMaxRepeats = 1000;
constexpr size_t kMaxTranslatedBytes = size_t{4} << 20;

struct PatternFlags {
  bool ignores_case = false;
};

std::string ranges_text(const CodeSet& set) {
  std::string text;
  for (const CodeRange& range : set.ranges()) {
    text += fmt::format("\\x{{{:X}}}", uint32_t(range.first));
    if (range.last != range.first) text += fmt::format("-\\x{{{:X}}}", uint32_t(range.last));
  }
  return text;
}

// The shorter of both spellings: a class that has the last code point is most likely a negation.
std::string set_text(const CodeSet& set) {
  if (set.empty()) return "(?!)";
  if (set.ranges().back().last != 0x10ffff) return "[" + ranges_text(set) + "]";
  const CodeSet rest = set.complement();
  return rest.empty() ? "(?s:.)" : "[^" + ranges_text(rest) + "]";
}

bool is_ascii(const CodeSet& set) { return set.empty() || set.ranges().back().last < 0x80; }

struct Interval {
  int least = 0;
  std::optional<int> most;  // nothing: any number
};

class Translator {
 public:
  Translator(std::string_view pattern, PatternDialect dialect, const std::string& where)
      : reader_(pattern, dialect, where) {}

  std::string translate() {
    alternatives(0, {});
    if (!reader_.at_end()) reader_.refuse("it has a ')' too many");
    return std::move(out_);
  }

 private:
  // Up to the end of the group, which is not passed.
  void alternatives(int depth, PatternFlags flags) {
    if (depth > kMaxGroupDepth)
      reader_.refuse("its groups are nested deeper than {}", kMaxGroupDepth);
    before_ = 0;
    while (!reader_.at_end() && !reader_.next_is(")")) {
      if (reader_.take("|")) {
        out_ += '|';
        before_ = 0;
        continue;
      }
      const size_t start = out_.size();
      if (start > kMaxTranslatedBytes) reader_.refuse("it has too many classes");
      if (atom(depth, flags)) quantifier(start);
    }
  }

  // False: what has been written cannot be repeated.
  bool atom(int depth, PatternFlags& flags) {
    if (reader_.take("(")) return group(depth, flags);
    if (reader_.take("[")) {
      bracket_class(take_bracket_class(reader_), flags);
      return true;
    }
    if (reader_.take("\\")) return escape(flags);
    if (reader_.take("^")) return anchor(reader_.is_oniguruma() ? "^" : "\\A");
    if (reader_.take("$")) return anchor(reader_.is_oniguruma() ? "$" : "\\z");
    if (reader_.next_is("*") || reader_.next_is("+") || reader_.next_is("?"))
      reader_.refuse("it has a quantifier without something to repeat");
    if (reader_.take(".")) {
      out_ += '.';
      before_ = 0;
      return true;
    }
    character(reader_.take_character(), flags);
    return true;
  }

  bool anchor(std::string_view text) {
    out_ += text;
    before_ = 0;
    return false;
  }

  bool escape(const PatternFlags& flags) {
    const PatternReader::Escape found = reader_.take_escape();
    if (found.character) {
      character(*found.character, flags);
      return true;
    }
    before_ = 0;
    if (found.set) {
      if (flags.ignores_case && found.has_case) reader_.refuse("it has a class in a caseless part");
      out_ += set_text(*found.set);
      return true;
    }
    const char32_t letter = reader_.take_character();
    if (letter == 'A' || letter == 'z') return anchor(letter == 'A' ? "\\A" : "\\z");
    if (reader_.is_oniguruma() && letter == 'Z') return anchor("\\Z");
    if (letter == 'b' || letter == 'B') return anchor(word_border(letter == 'b'));
    if (reader_.is_oniguruma() && (letter == 'R' || letter == 'X')) {
      out_ += letter == 'R' ? "\\R" : "\\X";
      return true;
    }
    std::string name;
    append_character(name, letter);
    reader_.refuse("it has \\{}", name);
  }

  [[nodiscard]] std::string word_border(bool is_border) const {
    const std::string word =
        set_text(CodeSet::of_class(reader_.is_oniguruma() ? "word" : "rust_word"));
    const auto border = [&](std::string_view before, std::string_view after) {
      return fmt::format("(?<{}{})(?{}{})", before, word, after, word);
    };
    return is_border ? "(?:" + border("=", "!") + "|" + border("!", "=") + ")"
                     : "(?:" + border("=", "=") + "|" + border("!", "!") + ")";
  }

  void character(char32_t code, const PatternFlags& flags) {
    if (flags.ignores_case) check_fold(code);
    before_ = code;
    const bool is_word = (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') ||
                         (code >= 'A' && code <= 'Z') || code >= 0x80;
    if (is_word)
      append_character(out_, code);
    else
      out_ += fmt::format("\\x{{{:X}}}", uint32_t(code));
  }

  // Oniguruma folds these pairs to one character, as ss to U+00DF.
  void check_fold(char32_t code) const {
    constexpr std::array<std::string_view, 5> kFolded = {"ss", "ff", "fi", "fl", "st"};
    if (code >= 0x80) reader_.refuse("it has a caseless character beyond ASCII");
    const std::string pair = {char(before_ | 0x20), char(code | 0x20)};
    if (reader_.is_oniguruma() && std::ranges::find(kFolded, pair) != kFolded.end())
      reader_.refuse("it has a caseless '{}'", pair);
  }

  void bracket_class(const BracketClass& found, const PatternFlags& flags) {
    before_ = 0;
    if (!flags.ignores_case) {
      out_ += set_text(found.is_negated ? found.set.complement() : found.set);
      return;
    }
    if (!found.is_plain || !is_ascii(found.set) || found.set.empty())
      reader_.refuse("it has a class in a caseless part");
    out_ += found.is_negated ? "[^" : "[";
    out_ += ranges_text(found.set) + "]";
  }

  bool group(int depth, PatternFlags& flags) {
    if (!reader_.take("?")) return group_body("(?:", depth, flags);
    for (const std::string_view kind : {":", "=", "!", ">", "<=", "<!"})
      if (reader_.take(kind)) {
        group_body("(?" + std::string(kind), depth, flags);
        return kind == ":" || kind == ">";
      }
    if (reader_.take("#")) {
      reader_.take_until(')');
      return false;
    }
    if (reader_.take(reader_.is_oniguruma() ? "<" : "P<")) {
      reader_.take_until('>');
      return group_body("(?:", depth, flags);
    }
    return options(depth, flags);
  }

  bool group_body(std::string_view opening, int depth, const PatternFlags& flags) {
    out_ += opening;
    alternatives(depth + 1, flags);
    if (!reader_.take(")")) reader_.refuse("it lacks a ')'");
    out_ += ')';
    before_ = 0;
    return true;
  }

  // After "(?": "i:...)" or "i)", which in Ruby holds for the rest of the group, alternatives included.
  bool options(int depth, PatternFlags& flags) {
    const bool is_ruby = reader_.is_oniguruma();
    PatternFlags inner = flags;
    std::string opening = "(?";
    for (bool is_on = true; !reader_.next_is(")") && !reader_.next_is(":");) {
      if (reader_.take("-")) {
        is_on = false;
        opening += '-';
      } else if (reader_.take("i")) {
        inner.ignores_case = is_on;
        opening += 'i';
      } else if (reader_.take(is_ruby ? "m" : "s")) {
        opening += 's';  // the dot matches a line's end
      } else {
        reader_.refuse("it has the group (?{})", char(reader_.take_character() & 0x7f));
      }
    }
    if (reader_.take(":")) return group_body(opening + ":", depth, inner);
    reader_.take(")");
    before_ = 0;
    if (is_ruby) {
      out_ += opening + ":";
      alternatives(depth + 1, inner);
      out_ += ')';
    } else {
      out_ += opening + ")";
      flags = inner;
    }
    return false;
  }

  std::optional<int> number() {
    int value = 0;
    bool is_one = false;
    while (!reader_.at_end()) {
      const size_t place = reader_.place();
      const char32_t digit = reader_.take_character();
      if (digit < '0' || digit > '9') {
        reader_.go_to(place);
        break;
      }
      is_one = true;
      value = std::min(value * 10 + int(digit - '0'), kMaxRepeats + 1);
    }
    return is_one ? std::optional(value) : std::nullopt;
  }

  // "{2,3}"; if it is none, the place is as before, and a '{' is itself.
  std::optional<Interval> interval() {
    const size_t start = reader_.place();
    if (!reader_.take("{")) return std::nullopt;
    const std::optional<int> least = number();
    const bool has_comma = reader_.take(",");
    const std::optional<int> most = has_comma ? number() : least;
    if (!reader_.take("}") || (!least && !most)) {
      reader_.go_to(start);
      return std::nullopt;
    }
    const Interval found = {least.value_or(0), most};
    if (found.least > kMaxRepeats || found.most.value_or(0) > kMaxRepeats)
      reader_.refuse("it repeats more than {} times", kMaxRepeats);
    if (found.most && *found.most < found.least) reader_.refuse("it has an interval backwards");
    return found;
  }

  // After the atom that was written from `start` on.
  void quantifier(size_t start) {
    if (const auto found = interval()) {
      repeat_interval(start, *found);
    } else if (reader_.next_is("*") || reader_.next_is("+") || reader_.next_is("?")) {
      out_ += char(reader_.take_character());
      if (reader_.take("?"))
        out_ += '?';
      else if (reader_.take("+"))
        out_ += '+';
    } else {
      return;
    }
    before_ = 0;
    const size_t place = reader_.place();
    if (reader_.next_is("*") || reader_.next_is("+") || reader_.next_is("?") || interval()) {
      reader_.go_to(place);
      reader_.refuse("it has a quantifier after a quantifier");
    }
  }

  void repeat_interval(size_t start, const Interval& found) {
    const bool is_fixed = found.most && *found.most == found.least;
    out_ += is_fixed     ? fmt::format("{{{}}}", found.least)
            : found.most ? fmt::format("{{{},{}}}", found.least, *found.most)
                         : fmt::format("{{{},}}", found.least);
    const auto repeat_whole = [&](char quantifier) {
      out_.insert(start, "(?:");
      out_ += ')';
      out_ += quantifier;
    };
    // In Ruby "{n,m}+" repeats what is repeated, and "{n}?" makes it optional.
    if (reader_.take("+")) {
      if (reader_.is_oniguruma())
        repeat_whole('+');
      else
        out_ += '+';
    } else if (reader_.take("?")) {
      if (reader_.is_oniguruma() && is_fixed)
        repeat_whole('?');
      else
        out_ += '?';
    }
  }

  PatternReader reader_;
  std::string out_;
  char32_t before_ =
      0;  // the literal that was written last, if the next one stands right behind it
};

}  // namespace

std::string to_pcre2(std::string_view pattern, PatternDialect dialect, const std::string& where) {
  return Translator(pattern, dialect, where).translate();
}

}  // namespace gxp
