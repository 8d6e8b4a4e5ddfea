#include "lib/text/pipeline/pre_tokenizer.h"

#include <algorithm>

#include "lib/text/bpe/byte_table.h"
#include "lib/text/unicode/char_class.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

// The segments that the delimiters leave, in the order of the text.
void behave(SplitBehavior behavior, std::vector<TextSegment>& segments) {
  if (behavior == SplitBehavior::kRemoved)
    std::erase_if(segments, [](const TextSegment& segment) { return segment.is_match; });
  if (behavior == SplitBehavior::kRemoved || behavior == SplitBehavior::kIsolated) return;
  const bool is_backwards = behavior == SplitBehavior::kMergedWithNext;
  if (is_backwards) std::ranges::reverse(segments);
  size_t kept = 0;
  bool was_match = false;
  for (const TextSegment segment : segments) {
    const bool joins = behavior == SplitBehavior::kContiguous ? segment.is_match == was_match
                                                              : segment.is_match && !was_match;
    was_match = segment.is_match;
    if (!joins || kept == 0)
      segments[kept++] = segment;
    else if (is_backwards)
      segments[kept - 1].begin = segment.begin;
    else
      segments[kept - 1].end = segment.end;
  }
  segments.resize(kept);
  if (is_backwards) std::ranges::reverse(segments);
}

class SplitStep final : public PreTokenizerStep {
 public:
  explicit SplitStep(SplitRules rules) : rules_(std::move(rules)) {}

  void apply(WordList& list) const override {
    list.next_words.clear();
    for (const ByteSpan& word : list.words) {
      const std::string_view text = list.text.text.substr(word.begin, word.end - word.begin);
      list.segments.clear();
      if (list.is_mapped)
        find_mapped(text, list);
      else
        rules_.find(text, list.match, list.segments);
      if (rules_.is_inverted)
        for (TextSegment& segment : list.segments) segment.is_match = !segment.is_match;
      behave(rules_.behavior, list.segments);
      for (const TextSegment& segment : list.segments)
        if (segment.begin < segment.end)
          list.next_words.push_back(
              {word.begin + uint32_t(segment.begin), word.begin + uint32_t(segment.end)});
    }
    list.words.swap(list.next_words);
  }

 private:
  // In the characters of the bytes, of which each has one or two bytes.
  void find_mapped(std::string_view bytes, WordList& list) const {
    list.mapped = characters_of_bytes(bytes);
    rules_.find(list.mapped, list.match, list.segments);
    size_t at = 0, count = 0;  // characters before `at`
    const auto byte_at = [&](size_t end) {
      for (; at < end; at += character_at(list.mapped, at).length) ++count;
      return count;
    };
    for (TextSegment& segment : list.segments) {
      segment.begin = byte_at(segment.begin);
      segment.end = byte_at(segment.end);
    }
  }

  SplitRules rules_;
};

class MetaspaceStep final : public PreTokenizerStep {
 public:
  MetaspaceStep(const std::string& mark, PrependScheme scheme, bool splits)
      : mark_(mark), scheme_(scheme) {
    if (splits) split_.emplace(SplitRules{find_text(mark), SplitBehavior::kMergedWithNext, false});
  }

  void apply(WordList& list) const override {
    rewrite(list, [this](TextView word, TextBuilder& out) {
      const bool has_mark = word.text.starts_with(' ') || word.text.starts_with(mark_);
      const bool is_prepended = scheme_ == PrependScheme::kAlways ||
                                (scheme_ == PrependScheme::kFirst && word.source_begin() == 0);
      if (is_prepended && !has_mark) out.append(mark_, {word.source_begin(), word.source_begin()});
      size_t done = 0;
      for (size_t at = word.text.find(' '); at != word.text.npos; at = word.text.find(' ', done)) {
        out.append(word.part(done, at));
        out.append(mark_, word.source(at, at + 1));
        done = at + 1;
      }
      out.append(word.part(done, word.size()));
    });
    if (split_) split_->apply(list);
  }

 private:
  std::string mark_;
  PrependScheme scheme_;
  std::optional<SplitStep> split_;
};

class ByteLevelStep final : public PreTokenizerStep {
 public:
  ByteLevelStep(bool adds_space, bool uses_pattern) : adds_space_(adds_space) {
    if (uses_pattern)
      split_.emplace(
          SplitRules{find_known_words(gpt2_word_rules()), SplitBehavior::kIsolated, false});
  }

  void apply(WordList& list) const override {
    if (adds_space_)
      rewrite(list, [](TextView word, TextBuilder& out) {
        if (!word.text.starts_with(' '))
          out.append(" ", {word.source_begin(), word.source_begin()});
        out.append(word);
      });
    if (split_) split_->apply(list);
    if (!list.invalid_source.empty()) restore_bytes(list);
    list.is_mapped = true;
  }

 private:
  bool adds_space_;
  std::optional<SplitStep> split_;
};

}  // namespace

DelimiterFinder find_pattern(std::unique_ptr<TextPattern> pattern) {
  return [pattern = std::shared_ptr<TextPattern>(std::move(pattern))](
             std::string_view text, MatchMemory& memory, std::vector<TextSegment>& out) {
    pattern->cut(text, memory, out);
  };
}

DelimiterFinder find_known_words(const WordRules& rules) {
  return [&rules](std::string_view text, MatchMemory&, std::vector<TextSegment>& out) {
    for (size_t at = 0, end = 0; at < text.size(); at = end) {
      end = word_end(rules, text, at);
      out.push_back({at, end, true});
    }
  };
}

DelimiterFinder find_text(std::string wanted) {
  return [wanted = std::move(wanted)](std::string_view text, MatchMemory&,
                                      std::vector<TextSegment>& out) {
    size_t done = 0;
    for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, done)) {
      if (done < at) out.push_back({done, at, false});
      done = at + wanted.size();
      out.push_back({at, done, true});
    }
    if (done < text.size()) out.push_back({done, text.size(), false});
  };
}

DelimiterFinder find_characters(uint16_t class_bits) {
  return [class_bits](std::string_view text, MatchMemory&, std::vector<TextSegment>& out) {
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      const Character character = character_at(text, at);
      const size_t end = at + character.length;
      if ((CharClasses::table().of(character.code) & class_bits) != 0) {
        if (done < at) out.push_back({done, at, false});
        out.push_back({at, end, true});
        done = end;
      }
      at = end;
    }
    if (done < text.size()) out.push_back({done, text.size(), false});
  };
}

DelimiterFinder find_rust_words() {
  return [](std::string_view text, MatchMemory&, std::vector<TextSegment>& out) {
    uint16_t kind_before = 0;
    for (size_t at = 0; at < text.size();) {
      const Character character = character_at(text, at);
      const uint16_t kind = CharClasses::table().of(character.code) & (kRustWord | kSpace);
      if (out.empty() || kind != kind_before) out.push_back({at, at, kind != kSpace});
      kind_before = kind;
      at += character.length;
      out.back().end = at;
    }
  };
}

std::unique_ptr<PreTokenizerStep> make_split(SplitRules rules) {
  return std::make_unique<SplitStep>(std::move(rules));
}
std::unique_ptr<PreTokenizerStep> make_metaspace(const std::string& mark, PrependScheme scheme,
                                                 bool splits) {
  return std::make_unique<MetaspaceStep>(mark, scheme, splits);
}
std::unique_ptr<PreTokenizerStep> make_byte_level(bool adds_space, bool uses_pattern) {
  return std::make_unique<ByteLevelStep>(adds_space, uses_pattern);
}

}  // namespace gxp
