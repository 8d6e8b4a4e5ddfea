#include "lib/text/pattern/word_scanner.h"

#include <array>
#include <optional>

#include "lib/text/pattern/known_patterns.h"
#include "lib/text/unicode/char_class.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

struct KnownPattern {
  PatternDialect dialect;
  std::string_view pattern;
  WordRules rules;
};

constexpr WordRules kGpt2 = {.is_gpt2 = true};
constexpr WordRules kGpt2Run = {.is_gpt2 = true, .ends_with_run = true};

constexpr std::array kKnown = {
    KnownPattern{PatternDialect::kOniguruma, kGpt2Pattern, kGpt2},
    KnownPattern{PatternDialect::kFancyRegex, kTiktokenGpt2Pattern, kGpt2Run},
    KnownPattern{PatternDialect::kOniguruma, kLlama3Pattern, {.most_digits = 3}},
    KnownPattern{PatternDialect::kFancyRegex, kLlama3Pattern, {.most_digits = 3}},
    KnownPattern{PatternDialect::kOniguruma, kQwen2Pattern, {.most_digits = 1}},
    KnownPattern{PatternDialect::kOniguruma, kQwen35Pattern, {.most_digits = 1, .has_marks = true}},
    KnownPattern{
        PatternDialect::kOniguruma, kCl100kPattern, {.most_digits = 0, .ends_with_run = true}},
    KnownPattern{
        PatternDialect::kFancyRegex, kCl100kPattern, {.most_digits = 3, .ends_with_run = true}},
    KnownPattern{
        PatternDialect::kOniguruma,
        kTekkenPattern,
        {.most_digits = 1, .splits_case = true, .has_contractions = false, .has_slash = true}},
    KnownPattern{PatternDialect::kOniguruma,
                 kO200kPattern,
                 {.most_digits = 3, .splits_case = true, .has_slash = true}},
    KnownPattern{PatternDialect::kFancyRegex,
                 kO200kPattern,
                 {.most_digits = 3, .splits_case = true, .has_slash = true}},
};

// Letters that may begin a word of splits_case, and those that may end one.
constexpr uint16_t kBeginsWord = kUpper | kTitle | kModifier | kOtherLetter | kMark;
constexpr uint16_t kEndsWord = kLower | kModifier | kOtherLetter | kMark;

// A character and its classes; at the text's end there are none.
struct Seen {
  char32_t code = 0;
  uint16_t classes = 0;
  size_t end = 0;
  bool exists = false;
  [[nodiscard]] bool is(uint16_t bits) const { return (classes & bits) != 0; }
  [[nodiscard]] bool breaks_line() const { return exists && (code == '\n' || code == '\r'); }
};

class WordEnd {
 public:
  WordEnd(const WordRules& rules, std::string_view text)
      : rules_(rules),
        text_(text),
        classes_(CharClasses::table()),
        letters_(rules.has_marks ? kLetter | kMark : kLetter) {}

  [[nodiscard]] size_t gpt2(size_t at) const {
    const Seen first = see(at);
    if (first.code == '\'')
      if (const size_t end = contraction(at, false)) return end;
    const Seen body = first.code == ' ' ? see(first.end) : first;
    for (const uint16_t kind : {uint16_t(kLetter), uint16_t(kNumber)})
      if (body.is(kind)) return run(body.end, [kind](const Seen& next) { return next.is(kind); });
    if (is_symbol(body)) return run(body.end, [this](const Seen& next) { return is_symbol(next); });
    return white_space(at);
  }

  [[nodiscard]] size_t later(size_t at) const {
    const Seen first = see(at);
    if (first.code == '\'' && rules_.has_contractions && !rules_.splits_case)
      if (const size_t end = contraction(at, true)) return end;
    if (const size_t end = rules_.splits_case ? case_word(first) : letter_word(first)) return end;
    if (first.is(kNumber)) return digits(first.end);
    const Seen body = first.code == ' ' ? see(first.end) : first;
    if (is_symbol(body)) return symbols(body.end);
    return white_space(at);
  }

 private:
  [[nodiscard]] Seen see(size_t at) const {
    if (at == text_.size()) return {.code = 0, .classes = 0, .end = at, .exists = false};
    const Character found = character_at(text_, at);
    return {found.code, classes_.of(found.code), at + found.length, true};
  }

  template <class Test>
  [[nodiscard]] size_t run(size_t at, Test test) const {
    for (Seen next = see(at); next.exists && test(next); next = see(at)) at = next.end;
    return at;
  }

  [[nodiscard]] bool is_symbol(const Seen& seen) const {
    return seen.exists && !seen.is(kSpace | kNumber | letters_);
  }

  // The end of "'s" and the like at the apostrophe `at`; 0: there is none. U+017F is a caseless s.
  [[nodiscard]] size_t contraction(size_t at, bool ignores_case) const {
    const std::string_view rest = text_.substr(at + 1, 2);
    const auto letter = [&](size_t i) {
      const char c = i < rest.size() ? rest[i] : '\0';
      return ignores_case && c >= 'A' && c <= 'Z' ? char(c | 0x20) : c;
    };
    switch (letter(0)) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return at + 2;
      case 'r':
      case 'v':
        return letter(1) == 'e' ? at + 3 : 0;
      case 'l':
        return letter(1) == 'l' ? at + 3 : 0;
      default:
        return ignores_case && rest == "\xc5\xbf" ? at + 3 : 0;
    }
  }

  // [^\r\n\p{L}\p{N}]?\p{L}+, or 0.
  [[nodiscard]] size_t letter_word(const Seen& first) const {
    const auto is_letter = [this](const Seen& next) { return next.is(letters_); };
    if (is_letter(first)) return run(first.end, is_letter);
    if (first.is(kNumber) || first.breaks_line()) return 0;
    const Seen second = see(first.end);
    return is_letter(second) ? run(second.end, is_letter) : 0;
  }

  // Both alternatives of splits_case, each with and without a character before the letters, or 0.
  [[nodiscard]] size_t case_word(const Seen& first) const {
    const bool may_lead = !first.is(kLetter | kNumber) && !first.breaks_line();
    const size_t begin = first.end - (first.code < 0x80      ? 1
                                      : first.code < 0x800   ? 2
                                      : first.code < 0x10000 ? 3
                                                             : 4);
    size_t end = may_lead ? lower_word(first.end) : 0;
    if (end == 0) end = lower_word(begin);
    if (end == 0 && may_lead) end = upper_word(first.end);
    if (end == 0) end = upper_word(begin);
    if (end == 0 || !rules_.has_contractions || see(end).code != '\'') return end;
    const size_t contracted = contraction(end, true);
    return contracted == 0 ? end : contracted;
  }

  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+, or 0.
  [[nodiscard]] size_t lower_word(size_t at) const {
    size_t last_end = 0;  // behind the last of the first class that is in the second, too
    Seen next = see(at);
    for (; next.is(kBeginsWord); next = see(next.end))
      if (next.is(kEndsWord)) last_end = next.end;
    if (!next.is(kEndsWord)) return last_end;
    return run(next.end, [](const Seen& seen) { return seen.is(kEndsWord); });
  }

  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*, or 0, where lower_word() is 0.
  [[nodiscard]] size_t upper_word(size_t at) const {
    const size_t end = run(at, [](const Seen& seen) { return seen.is(kBeginsWord); });
    return end == at ? 0 : run(end, [](const Seen& seen) { return seen.is(kEndsWord); });
  }

  [[nodiscard]] size_t digits(size_t at) const {
    int count = 1;
    return run(at, [&](const Seen& next) {
      return next.is(kNumber) && (rules_.most_digits == 0 || count++ < rules_.most_digits);
    });
  }

  // ` ?[^\s\p{L}\p{N}]+[\r\n]*`, the first of them passed.
  [[nodiscard]] size_t symbols(size_t at) const {
    at = run(at, [this](const Seen& next) { return is_symbol(next); });
    while (at < text_.size() &&
           (text_[at] == '\n' || text_[at] == '\r' || (rules_.has_slash && text_[at] == '/')))
      ++at;
    return at;
  }

  // A run of white space: up to its last line break, or all but its last character, which may
  // belong to the next word.
  [[nodiscard]] size_t white_space(size_t at) const {
    size_t end = at, last = at, line_end = 0;
    for (Seen next = see(at); next.is(kSpace); next = see(end)) {
      last = end;
      end = next.end;
      if (next.breaks_line()) line_end = end;
    }
    if (end == text_.size() && (rules_.ends_with_run || rules_.is_gpt2 || line_end == 0))
      return end;
    if (line_end != 0 && !rules_.is_gpt2) return line_end;
    return last == at || end == text_.size() ? end : last;
  }

  const WordRules& rules_;
  std::string_view text_;
  const CharClasses& classes_;
  uint16_t letters_;
};

}  // namespace

const WordRules* find_word_rules(std::string_view pattern, PatternDialect dialect) {
  for (const KnownPattern& known : kKnown)
    if (known.dialect == dialect && known.pattern == pattern) return &known.rules;
  return nullptr;
}

const WordRules& gpt2_word_rules() { return kGpt2; }

std::vector<std::string> known_patterns() {
  std::vector<std::string> patterns;
  for (const KnownPattern& known : kKnown) patterns.emplace_back(known.pattern);
  return patterns;
}

size_t word_end(const WordRules& rules, std::string_view text, size_t at) {
  const WordEnd words(rules, text);
  return rules.is_gpt2 ? words.gpt2(at) : words.later(at);
}

}  // namespace gxp
