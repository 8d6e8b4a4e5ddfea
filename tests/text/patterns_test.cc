// Patterns of tokenizers: the translation to PCRE2, and the hand-written scanners against it.
#include <random>

#include "lib/text/pattern/text_pattern.h"
#include "lib/text/pattern/word_scanner.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/text/golden_tokenizers.h"

namespace gxp {
namespace {

using Words = std::vector<std::string>;

// Matches in brackets.
Words words_of(const std::string& pattern, std::string_view text,
               PatternDialect dialect = PatternDialect::kOniguruma) {
  const TextPattern compiled(pattern, dialect, "test");
  MatchMemory memory;
  std::vector<TextSegment> segments;
  compiled.cut(text, memory, segments);
  Words words;
  for (const TextSegment& segment : segments) {
    const std::string word(text.substr(segment.begin, segment.end - segment.begin));
    words.push_back(segment.is_match ? "[" + word + "]" : word);
  }
  return words;
}

Words scanned_words(const WordRules& rules, std::string_view text) {
  Words words;
  for (size_t at = 0, end = 0; at < text.size(); at = end) {
    end = word_end(rules, text, at);
    words.push_back("[" + std::string(text.substr(at, end - at)) + "]");
  }
  return words;
}

// Characters at which the families' patterns decide.
std::string random_text(uint32_t seed) {
  const Words parts = {" ",       "  ",         "\n",         "\r\n",   "\t",      "'",
                       "s",       "S",          "ll",         "re",     "'\u017f", "a",
                       "B",       "Cd",         "1",          "23",     "\u00bd",  "\u00e9",
                       "e\u0301", "\u0301",     "\u01c5",     "\u02b0", "\u4e00",  "\u0660",
                       "/",       "!",          "//",         ".\n",    "\u00a0",  "\u3000",
                       "\u2028",  "\U0001f600", "\U0001fa77", "\ue000", "\u0378",  "\u0e33"};
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < 40; ++i) text += parts[random() % parts.size()];
  return text;
}

}  // namespace

TEST_CASE("a known pattern is scanned as PCRE2 matches it", "[text]") {
  const std::string pattern = GENERATE(from_range(known_patterns()));
  const auto dialect = GENERATE(PatternDialect::kOniguruma, PatternDialect::kFancyRegex);
  const WordRules* const rules = find_word_rules(pattern, dialect);
  if (rules == nullptr) return;
  CAPTURE(pattern);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::string text = random_text(seed);
    CAPTURE(text);
    CHECK(scanned_words(*rules, text) == words_of(pattern, text, dialect));
  }
  const std::string scripts = with_valid_utf8(content_of(kTextData + "corpora/scripts.bin"));
  CHECK((scanned_words(*rules, scripts) == words_of(pattern, scripts, dialect)));
}

TEST_CASE("a pattern of Oniguruma matches in PCRE2 what it matches there", "[text]") {
  const auto [pattern, text, words] = GENERATE(table<std::string, std::string, Words>({
      {R"(\p{N}{1,3}+)", "12345a", {"[12345]", "a"}},  // repeats, not possessive
      {R"(a{2}?b)", "aabb", {"[aab]", "[b]"}},
      {R"(a{,2}b)", "aaab", {"a", "[aab]"}},
      {R"(\s++$)", "a \nb  ", {"a \nb", "[  ]"}},
      {R"([a-c[x]&&[^b]])", "abcx", {"[a]", "b", "[c]", "[x]"}},
      {R"([^(\s|[.,])]+)", "ab.c|d", {"[ab]", ".", "[c]", "|", "[d]"}},
      {R"(\h+)", "xfF0g", {"x", "[fF0]", "g"}},
      {R"((?m:a.))", "a\n", {"[a\n]"}},
      {R"(a.)", "a\n", {"a\n"}},
      {R"((?i:'s))", "'\u017f'S", {"['\u017f]", "['S]"}},
      {R"(a(?i)b|c)", "aC ab ac", {"[aC]", " ", "[ab]", " ", "[ac]"}},
      {R"(\w+)", "a_\u00b2\u0301\u24b6-", {"[a_\u00b2\u0301\u24b6]", "-"}},
      {R"([\w]|[^\W])", "\u00bd\u0301", {"\u00bd", "[\u0301]"}},
      {R"(\bx\B)", "x xy", {"x ", "[x]", "y"}},
      {R"(\u0041\x42\x{43})", "ABC", {"[ABC]"}},
      {R"(x*)", "aabxxa", {"[]", "a", "[]", "a", "[]", "b", "[xx]", "a", "[]"}},
      {R"(\p{Han}|\p{^L}|\P{L})", "\u4e00a1", {"[\u4e00]", "a", "[1]"}},
      {R"([]a]+)", "a]b", {"[a]]", "b"}},
      {R"((?<n>a)(?#x)(b))", "ab", {"[ab]"}},
      {R"({|a{|a{x})", "a{x}a{", {"[a{]", "x}", "[a{]"}},
  }));
  CAPTURE(pattern, text);
  CHECK(words_of(pattern, text) == words);
}

TEST_CASE("what is not matched alike is refused by name", "[text]") {
  const auto [pattern, words] = GENERATE(table<std::string, std::string>({
      {R"((a)\1)", "\\1"},
      {R"(\Ka)", "\\K"},
      {R"(\Ga)", "\\G"},
      {R"(\pL)", "\\p without braces"},
      {R"(\p{Script=Han})", "\\p{Script=Han}"},
      {R"((?x) a)", "(?x)"},
      {R"((?~a))", "(?~)"},
      {R"(a**)", "a quantifier after a quantifier"},
      {R"(*a)", "without something to repeat"},
      {R"([[:alpha:]])", "a POSIX class"},
      {R"([\w-z])", "a range that begins with a class"},
      {R"((?i)a\u00df)", "beyond ASCII"},
      {R"((?i:ss))", "caseless 'ss'"},
      {R"((?i:\p{Lu}))", "a class in a caseless part"},
      {R"((a)", "lacks a ')'"},
      {R"(a))", "a ')' too many"},
      {R"([a)", "ends too early"},
      {R"(a{5,2})", "an interval backwards"},
      {R"(a{100000})", "repeats more than"},
      {R"(((((a{1000}){1000}){1000}){1000}))", "cannot be compiled"},
      {R"(\x{110000})", "no code point"},
  }));
  CAPTURE(pattern);
  const std::string tried = pattern;
  const Caught caught = error_of([&] { words_of(tried, ""); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK_THAT(caught.message, Catch::Matchers::Contains(words));
}

TEST_CASE("a pattern that needs too many steps is an error", "[text]") {
  const std::string text(64, 'a');
  const Caught caught = error_of([&] { words_of("(?:a|aa)+[^a-z]", text); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK(caught.says("needs more than gxp allows"));
}

TEST_CASE("what tiktoken's syntax means otherwise is matched so", "[text]") {
  const auto fancy = PatternDialect::kFancyRegex;
  CHECK(words_of(R"(\p{N}{1,3}+)", "12345", fancy) == Words{"[123]", "[45]"});
  CHECK(words_of(R"(\s++$)", "a \nb ", fancy) == Words{"a \nb", "[ ]"});
  CHECK(words_of(R"(\pL+|\p{Script=Han})", "ab1", fancy) == Words{"[ab]", "1"});
}

}  // namespace gxp
