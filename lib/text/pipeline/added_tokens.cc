#include "lib/text/pipeline/added_tokens.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/text/unicode/char_class.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

uint64_t edge(uint32_t node, char byte) { return uint64_t(node) << 8 | uint8_t(byte); }

bool is_of(std::string_view text, size_t at, uint16_t bits) {
  return (CharClasses::table().of(character_at(text, at).code) & bits) != 0;
}

bool is_alone(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !is_of(text, character_before(text, begin), kRustWord)) &&
         (end == text.size() || !is_of(text, end, kRustWord));
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), token_of_(1, -1) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    uint32_t node = 0;
    for (const char byte : tokens_[i].content) {
      const auto [found, is_new] = next_.try_emplace(edge(node, byte), uint32_t(token_of_.size()));
      if (is_new) token_of_.push_back(-1);
      node = found->second;
    }
    if (node == 0) continue;
    begins_[uint8_t(tokens_[i].content[0])] = true;
    if (token_of_[node] < 0) token_of_[node] = int32_t(i);
  }
}

AddedTokens::Found AddedTokens::find(std::string_view text, size_t at) const {
  Found longest;
  uint32_t node = 0;
  for (; at < text.size(); ++at) {
    const auto next = next_.find(edge(node, text[at]));
    if (next == next_.end()) break;
    node = next->second;
    if (token_of_[node] >= 0) longest = {at + 1, &tokens_[size_t(token_of_[node])]};
  }
  return longest;
}

void AddedTokens::cut(std::string_view text, std::vector<TextPiece>& out) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    if (!begins_[uint8_t(text[at])]) {
      ++at;
      continue;
    }
    const Found found = find(text, at);
    if (found.token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at = found.end;
    if (found.token->is_single_word && !is_alone(text, begin, end)) continue;
    if (found.token->strips_left) {
      while (begin > 0 && is_of(text, character_before(text, begin), kSpace))
        begin = character_before(text, begin);
      begin = std::max(begin, done);
    }
    if (found.token->strips_right)
      while (end < text.size() && is_of(text, end, kSpace)) end += character_at(text, end).length;
    if (begin > end)
      fail(ErrorKind::kCorrupt,
           "the white space at the left of the added token '{}' belongs to the one before it, "
           "beyond its end; the tokenizers library refuses such a text, too",
           found.token->content);
    if (done < begin) out.push_back({done, begin, {}});
    if (begin < end) out.push_back({begin, end, found.token->id});
    done = end;
  }
  if (done < text.size()) out.push_back({done, text.size(), {}});
}

}  // namespace gxp
