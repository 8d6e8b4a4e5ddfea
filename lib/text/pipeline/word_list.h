// A text and the words that it falls into.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lib/text/byte_span.h"
#include "lib/text/pattern/text_pattern.h"
#include "lib/text/unicode/text_view.h"

namespace gxp {

struct WordList {
  TextView text;
  std::vector<ByteSpan>
      words;               // of the text, in order, none empty; what is between them is dropped
  bool is_mapped = false;  // from here on, each byte counts as its character (byte_table.h)

  // The source text, if it has bytes that are not UTF-8, which are U+FFFD in `text`.
  std::string_view invalid_source;

  // Memory of the steps, which starts a new text in turn in one of two.
  bool follows = false;
  std::array<TextBuilder, 2> texts;
  size_t which = 0;
  std::vector<ByteSpan> next_words;
  std::vector<TextSegment> segments;
  std::string mapped;
  MatchMemory match;
};

// Writes the words anew into a text of their own: `write` gets each and appends what it becomes.
template <class Write>
void rewrite(WordList& list, Write write) {
  TextBuilder& out = list.texts[list.which];
  out.clear(list.follows);
  for (ByteSpan& word : list.words) {
    const auto begin = uint32_t(out.size());
    write(list.text.part(word.begin, word.end), out);
    word = {begin, uint32_t(out.size())};
  }
  list.text = out.view();
  list.which = 1 - list.which;
}

// Puts bytes that are not UTF-8 back into the words.
void restore_bytes(WordList& list);

}  // namespace gxp
