// How text is split into words, which no token spans.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/text/pattern/text_pattern.h"
#include "lib/text/pattern/word_scanner.h"
#include "lib/text/pipeline/word_list.h"

namespace gxp {

// What becomes of a delimiter.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Appends the segments of a text, delimiters as matches.
using DelimiterFinder =
    std::function<void(std::string_view text, MatchMemory&, std::vector<TextSegment>&)>;
DelimiterFinder find_pattern(std::unique_ptr<TextPattern> pattern);
DelimiterFinder find_known_words(const WordRules& rules);  // each word is a match
DelimiterFinder find_text(std::string text);
DelimiterFinder find_characters(uint16_t class_bits);  // each alone
DelimiterFinder find_rust_words();                     // \w+|[^\w\s]+

enum class PrependScheme { kAlways, kFirst, kNever };

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  // Splits each word, and may change the text.
  virtual void apply(WordList& list) const = 0;
};

struct SplitRules {
  DelimiterFinder find;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool is_inverted = false;  // what does not match is the delimiter
};
std::unique_ptr<PreTokenizerStep> make_split(SplitRules rules);
// Spaces become `mark`, and one is put before each word, before that at the text's start, or before
// none, unless it begins with one. splits: a word begins at each mark.
std::unique_ptr<PreTokenizerStep> make_metaspace(const std::string& mark, PrependScheme scheme,
                                                 bool splits);
// One space before each word that begins with none; then GPT-2's pattern; then bytes as characters.
std::unique_ptr<PreTokenizerStep> make_byte_level(bool adds_space, bool uses_pattern);

}  // namespace gxp
