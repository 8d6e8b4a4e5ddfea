// "pre_tokenizer" of tokenizer.json.
#include <algorithm>
#include <array>

#include "lib/text/files/tokenizer_json.h"
#include "lib/text/unicode/char_class.h"

namespace gxp {
namespace {

SplitBehavior behavior_of(const std::string& name, const std::string& where) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames = {{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  }};
  for (const auto& [word, behavior] : kNames)
    if (word == name) return behavior;
  fail(ErrorKind::kCorrupt, "{}: the behavior '{}' is unknown", where, name);
}

class StepReader {
 public:
  explicit StepReader(const std::string& where) : where_(where) {}

  void take(const Json& step) {
    const std::string type = type_in(step, where_);
    // Words of rules are those only while nothing but the mapping of bytes comes after.
    const bool is_mapping_only = type == "ByteLevel" && !flag(step, "add_prefix_space", where_) &&
                                 !flag(step, "use_regex", true, where_);
    const bool is_first = read_.steps.empty();
    if (!is_first && !is_mapping_only) read_.word_rules = nullptr;
    if (type == "Split") {
      take_split(step, is_first);
    } else if (type == "ByteLevel") {
      take_byte_level(step, is_first);
    } else if (type == "Metaspace") {
      take_metaspace(step);
    } else if (type == "Digits") {
      add_split(find_characters(kRustNumeric), flag(step, "individual_digits", where_)
                                                   ? SplitBehavior::kIsolated
                                                   : SplitBehavior::kContiguous);
    } else if (type == "Punctuation") {
      const Json& behavior = member_or_null(step, "behavior");
      add_split(find_characters(kRustPunctuation),
                behavior.is_null() ? SplitBehavior::kIsolated
                                   : behavior_of(to_text(behavior, where_), where_));
    } else if (type == "Whitespace") {
      add_split(find_rust_words(), SplitBehavior::kRemoved, true);
    } else if (type == "WhitespaceSplit") {
      add_split(find_characters(kSpace), SplitBehavior::kRemoved);
    } else {
      refuse_text(where_, fmt::format("its pre_tokenizer is {}", type));
    }
  }

  PreTokenizerJson finish() { return std::move(read_); }

 private:
  void add_split(DelimiterFinder find, SplitBehavior behavior, bool is_inverted = false) {
    read_.steps.push_back(make_split({std::move(find), behavior, is_inverted}));
  }

  void take_split(const Json& step, bool is_first) {
    const PatternJson pattern = read_pattern(step, where_);
    const SplitBehavior behavior =
        behavior_of(to_text(member(step, "behavior", where_), where_), where_);
    const bool is_inverted = flag(step, "invert", where_);
    const WordRules* const rules =
        pattern.is_regex ? find_word_rules(pattern.text, PatternDialect::kOniguruma) : nullptr;
    DelimiterFinder find = rules != nullptr ? find_known_words(*rules)
                           : pattern.is_regex
                               ? find_pattern(std::make_unique<TextPattern>(
                                     pattern.text, PatternDialect::kOniguruma, where_))
                               : find_text(pattern.text);
    if (is_first && behavior == SplitBehavior::kIsolated && !is_inverted) read_.word_rules = rules;
    add_split(std::move(find), behavior, is_inverted);
  }

  void take_byte_level(const Json& step, bool is_first) {
    if (read_.is_byte_level) refuse_text(where_, "its pre_tokenizer has ByteLevel twice");
    read_.is_byte_level = true;
    const bool adds_space = flag(step, "add_prefix_space", where_);
    const bool uses_pattern = flag(step, "use_regex", true, where_);
    flag(step, "trim_offsets", where_);
    if (is_first && !adds_space && uses_pattern) read_.word_rules = &gpt2_word_rules();
    read_.steps.push_back(make_byte_level(adds_space, uses_pattern));
  }

  void take_metaspace(const Json& step) {
    if (read_.is_byte_level) refuse_text(where_, "its pre_tokenizer has Metaspace after ByteLevel");
    const Json& scheme = member_or_null(step, "prepend_scheme");
    const bool adds_space = flag(step, "add_prefix_space", true, where_);
    const std::string name = !scheme.is_null() ? to_text(scheme, where_)
                             : adds_space      ? "always"
                                               : "never";
    if (name != "always" && name != "first" && name != "never")
      fail(ErrorKind::kCorrupt, "{}: prepend_scheme is '{}'", where_, name);
    if (!adds_space && name != "never")
      fail(ErrorKind::kCorrupt, "{}: Metaspace has the prepend_scheme '{}' and no add_prefix_space",
           where_, name);
    const PrependScheme known = name == "always"  ? PrependScheme::kAlways
                                : name == "first" ? PrependScheme::kFirst
                                                  : PrependScheme::kNever;
    const std::string mark = to_text(member(step, "replacement", where_), where_);
    if (mark.empty()) fail(ErrorKind::kCorrupt, "{}: Metaspace has no replacement", where_);
    read_.asks_for_source |= known == PrependScheme::kFirst;
    read_.steps.push_back(make_metaspace(mark, known, flag(step, "split", true, where_)));
  }

  const std::string& where_;
  PreTokenizerJson read_;
};

}  // namespace

PreTokenizerJson read_pre_tokenizer(const Json& block, const std::string& where) {
  StepReader reader(where);
  for (const Json* step : steps_of(block, "pretokenizers", where)) reader.take(*step);
  return reader.finish();
}

}  // namespace gxp
