// Hand-written matchers of the patterns of well-known families, which are several times as fast as
// PCRE2 for characters beyond ASCII. Every character of a text is in one of their words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/pattern/pattern_dialect.h"

namespace gxp {

// How the words of a family are cut; see word_scanner.cc.
struct WordRules {
  bool is_gpt2 = false;          // GPT-2's pattern; all below is for those that came after it
  int most_digits = 0;           // in a word; 0: any number
  bool has_marks = false;        // marks are letters
  bool splits_case = false;      // a word of letters ends before an upper-case one
  bool has_contractions = true;  // "'s" is a word; with splits_case: the end of one
  bool has_slash = false;        // symbols take '/', too, with the line breaks behind them
  bool ends_with_run = false;    // white space at the text's end is one word
};

// The rules of this very pattern, or null. The object is static.
const WordRules* find_word_rules(std::string_view pattern, PatternDialect dialect);

const WordRules& gpt2_word_rules();
std::vector<std::string> known_patterns();  // of either dialect

// Where the word that begins at `at` ends; `at` < text.size(). The text is valid UTF-8.
// Cost: linear in the word, and in a run of white space.
size_t word_end(const WordRules& rules, std::string_view text, size_t at);

}  // namespace gxp
