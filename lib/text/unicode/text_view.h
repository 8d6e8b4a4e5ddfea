// Text on its way to tokens, with the place in the source text that each of its bytes comes from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/byte_span.h"

namespace gxp {

// Borrows its text, which is valid UTF-8 unless a function says otherwise.
struct TextView {
  std::string_view text;
  std::span<const ByteSpan> from;  // of each byte; empty: byte i is byte start + i of the source
  uint32_t start = 0;

  [[nodiscard]] size_t size() const { return text.size(); }
  [[nodiscard]] bool empty() const { return text.empty(); }
  [[nodiscard]] TextView part(size_t begin, size_t end) const {
    return {text.substr(begin, end - begin), from.empty() ? from : from.subspan(begin, end - begin),
            start + uint32_t(begin)};
  }
  // Of the bytes [begin, end), which is not empty.
  [[nodiscard]] ByteSpan source(size_t begin, size_t end) const {
    if (from.empty()) return {start + uint32_t(begin), start + uint32_t(end)};
    return {from[begin].begin, from[end - 1].end};
  }
  // Where the text begins in the source; the text is not empty.
  [[nodiscard]] uint32_t source_begin() const { return source(0, 1).begin; }
};

// Text that is written piece by piece. It keeps where bytes come from only if it `follows` them:
// the places of a view of one that does not mean nothing.
class TextBuilder {
 public:
  explicit TextBuilder(bool follows = false) : follows_(follows) {}
  [[nodiscard]] bool follows() const { return follows_; }
  void clear(bool follows) {
    follows_ = follows;
    text_.clear();
    from_.clear();
  }
  // All of `bytes` come from there.
  void append(std::string_view bytes, ByteSpan source) {
    text_ += bytes;
    if (follows_) from_.insert(from_.end(), bytes.size(), source);
  }
  void append(TextView view) {
    text_ += view.text;
    if (!follows_) return;
    for (size_t i = 0; i < view.size(); ++i) from_.push_back(view.source(i, i + 1));
  }
  [[nodiscard]] size_t size() const { return text_.size(); }
  // Valid until the next change.
  [[nodiscard]] TextView view() const { return {text_, from_, 0}; }

 private:
  bool follows_;
  std::string text_;
  std::vector<ByteSpan> from_;
};

}  // namespace gxp
