#include "lib/text/bpe/bpe.h"

#include <algorithm>
#include <queue>

#include "lib/base/error.h"
#include "lib/base/text/utf8.h"
#include "lib/text/bpe/byte_table.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

constexpr std::string_view kSpaceSign = "\xe2\x96\x81";  // U+2581
// Up to here looking at all pairs is faster than a heap: half of the time at 16 tokens of English.
constexpr size_t kFewTokens = 48;

// Collects the tokens of a word's symbols. An unknown one waits for the next known symbol, so that
// it may be fused with others; bytes that stand for a character go past it, as in the library.
class SymbolWriter {
 public:
  SymbolWriter(const BpeModel& model, std::vector<WordToken>& tokens)
      : model_(model), tokens_(tokens) {}
  ~SymbolWriter() { flush(); }
  SymbolWriter(const SymbolWriter&) = delete;
  SymbolWriter& operator=(const SymbolWriter&) = delete;

  void known(WordToken token) {
    flush();
    tokens_.push_back(token);
  }
  void byte(WordToken token) { tokens_.push_back(token); }
  void unknown(uint32_t begin, uint32_t end) {
    if (!model_.unknown) return;
    if (waiting_ && model_.fuses_unknown) {
      waiting_->end = end;
    } else {
      flush();
      waiting_ = WordToken{*model_.unknown, begin, end};
    }
  }

 private:
  void flush() {
    if (waiting_) tokens_.push_back(*waiting_);
    waiting_.reset();
  }
  const BpeModel& model_;
  std::vector<WordToken>& tokens_;
  std::optional<WordToken> waiting_;
};

int32_t id_or(const VocabularyIds& tokens, std::string_view text, int32_t otherwise) {
  const auto found = tokens.find(text);
  return found == tokens.end() ? otherwise : found->second;
}

// A pair that may merge; the heap has it until it is reached, even if one of both is gone.
struct Candidate {
  uint32_t rank = 0, at = 0;
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

}  // namespace

Bpe::Bpe(BpeModel model) : model_(std::move(model)), merges_(model_.merges.size()) {
  for (const BpeMerge& merge : model_.merges) merges_.set(merge.left, merge.right, merge.made);
  for (int byte = 0; byte < 256; ++byte) {
    const size_t at = size_t(byte);
    fallback_[at] = id_or(model_.tokens, byte_token(uint8_t(byte)), kNone);
    for (size_t place = 0; place < symbols_.size(); ++place) {
      std::string symbol = (place & 1) != 0 ? "" : model_.prefix;
      symbol += char(byte);
      if ((place & 2) != 0) symbol += model_.suffix;
      symbols_[place][at] = id_or(model_.tokens, symbol, kNone);
    }
  }
  find_cuts();
}

void Bpe::find_cuts() {
  const bool is_plain = !model_.is_byte_level && !model_.takes_whole_words &&
                        model_.prefix.empty() && model_.suffix.empty();
  if (!is_plain || !model_.tokens.contains(kSpaceSign)) return;
  std::unordered_map<int32_t, std::string_view> texts;
  for (const auto& [text, id] : model_.tokens) texts.emplace(id, text);
  std::vector<bool> before(0x110000);
  for (const BpeMerge& merge : model_.merges) {
    // Merges with tokens that stand for other text than their own: the cuts would not know it.
    for (const int32_t part : {merge.left, merge.right})
      if (part == model_.unknown || byte_of_token(texts[part])) return;
    const std::string_view text = texts[merge.made.id];
    for (size_t at = text.find(kSpaceSign, 1); at != text.npos; at = text.find(kSpaceSign, at + 1))
      before[character_at(text, character_before(text, at)).code] = true;
  }
  before_mark_ = std::move(before);
}

// The first place behind `from` before which nothing merges with what comes after.
size_t Bpe::next_cut(std::string_view word, size_t from) const {
  for (size_t at = word.find(kSpaceSign, from + 1); at != word.npos;
       at = word.find(kSpaceSign, at + 1)) {
    const size_t before = character_before(word, at);
    const bool is_character = utf8_length(word.substr(before, at - before)) == at - before;
    if (is_character && !(*before_mark_)[character_at(word, before).code]) return at;
  }
  return word.size();
}

void Bpe::encode(TextView word, BpeMemory& memory, TokenSink out) const {
  if (!before_mark_) {
    encode_part(word, memory, out);
    return;
  }
  for (size_t at = 0; at < word.size();) {
    const size_t end = next_cut(word.text, at);
    encode_part(word.part(at, end), memory, out);
    at = end;
  }
}

void Bpe::encode_part(TextView part, BpeMemory& memory, TokenSink out) const {
  const bool is_cached = out.spans == nullptr && part.size() <= WordCache::kMaxBytes;
  WordCache::Key key;
  if (is_cached) {
    key = WordCache::key_of(part.text);
    if (memory.cache.find(key, out.ids)) return;
  }
  std::vector<WordToken>& tokens = memory.tokens;
  tokens.clear();
  const auto whole = model_.takes_whole_words ? model_.tokens.find(part.text) : model_.tokens.end();
  if (whole != model_.tokens.end()) {
    tokens.push_back({whole->second, 0, uint32_t(part.size())});
  } else {
    model_.is_byte_level ? split_bytes(part.text, tokens) : split(part.text, tokens);
    merge(tokens);
  }
  for (const WordToken& token : tokens) {
    out.ids.push_back(token.id);
    if (out.spans != nullptr) out.spans->push_back(part.source(token.begin, token.end));
  }
  if (is_cached) memory.cache.keep(key, std::span(out.ids).subspan(out.ids.size() - tokens.size()));
}

void Bpe::split_bytes(std::string_view word, std::vector<WordToken>& tokens) const {
  SymbolWriter writer(model_, tokens);
  for (uint32_t at = 0; at < word.size(); ++at) {
    const size_t place = (at == 0 ? 1 : 0) + (at + 1 == word.size() ? 2 : 0);
    const int32_t id = symbols_[place][uint8_t(word[at])];
    if (id != kNone)
      writer.known({id, at, at + 1});
    else
      writer.unknown(at, at + 1);
  }
}

void Bpe::split(std::string_view word, std::vector<WordToken>& tokens) const {
  SymbolWriter writer(model_, tokens);
  std::string symbol;
  for (uint32_t at = 0, end = 0; at < word.size(); at = end) {
    const size_t length = std::max<size_t>(1, utf8_length(word.substr(at)));
    end = at + uint32_t(length);
    symbol = at == 0 ? "" : model_.prefix;
    symbol += word.substr(at, length);
    if (end == word.size()) symbol += model_.suffix;
    const int32_t id = id_or(model_.tokens, symbol, kNone);
    const auto has_byte = [&](char byte) { return fallback_[uint8_t(byte)] != kNone; };
    if (id != kNone) {
      writer.known({id, at, end});
    } else if (model_.falls_back_to_bytes && std::ranges::all_of(symbol, has_byte)) {
      const uint32_t before = symbol.size() == length ? 0 : 1;  // bytes of a prefix have no place
      for (uint32_t i = 0; i < symbol.size(); ++i) {
        const WordToken byte = {fallback_[uint8_t(symbol[i])], at + i, at + i + 1};
        writer.byte(before == 0 ? byte : WordToken{byte.id, at, end});
      }
    } else {
      writer.unknown(at, end);
    }
  }
}

void Bpe::merge(std::vector<WordToken>& tokens) const {
  tokens.size() <= kFewTokens ? merge_few(tokens) : merge_many(tokens);
}

void Bpe::merge_few(std::vector<WordToken>& tokens) const {
  std::array<MergeResult, kFewTokens> pairs;  // of each token and the next one
  size_t count = tokens.size();
  const auto look_up = [&](size_t at) {
    pairs[at] = at + 1 < count ? merges_.find(tokens[at].id, tokens[at + 1].id) : MergeResult();
  };
  for (size_t at = 0; at < count; ++at) look_up(at);
  while (count > 1) {
    const auto* const lowest = std::min_element(
        pairs.data(), pairs.data() + count - 1,
        [](const MergeResult& a, const MergeResult& b) { return a.rank < b.rank; });
    if (lowest->rank == MergeResult::kNever) break;
    const auto at = size_t(lowest - pairs.data());
    tokens[at] = {lowest->id, tokens[at].begin, tokens[at + 1].end};
    std::copy(tokens.begin() + ptrdiff_t(at) + 2, tokens.begin() + ptrdiff_t(count),
              tokens.begin() + ptrdiff_t(at) + 1);
    std::copy(pairs.begin() + ptrdiff_t(at) + 2, pairs.begin() + ptrdiff_t(count),
              pairs.begin() + ptrdiff_t(at) + 1);
    --count;
    look_up(at);
    if (at > 0) look_up(at - 1);
  }
  tokens.resize(count);
}

void Bpe::merge_many(std::vector<WordToken>& tokens) const {
  // Tokens that are merged away have no next one.
  constexpr uint32_t kEnd = UINT32_MAX;
  const auto count = uint32_t(tokens.size());
  std::vector<uint32_t> next(count), previous(count);
  for (uint32_t at = 0; at < count; ++at) {
    next[at] = at + 1 < count ? at + 1 : kEnd;
    previous[at] = at - 1;  // kEnd of the first
  }
  std::vector<bool> is_gone(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto pair_at = [&](uint32_t at) {
    return next[at] == kEnd ? MergeResult() : merges_.find(tokens[at].id, tokens[next[at]].id);
  };
  const auto offer = [&](uint32_t at) {
    const MergeResult made = pair_at(at);
    if (made.rank != MergeResult::kNever) heap.push({made.rank, at});
  };
  for (uint32_t at = 0; at < count; ++at) offer(at);
  while (!heap.empty()) {
    const Candidate lowest = heap.top();
    heap.pop();
    if (is_gone[lowest.at]) continue;
    const MergeResult made = pair_at(lowest.at);
    if (made.rank != lowest.rank) continue;
    const uint32_t right = next[lowest.at];
    tokens[lowest.at] = {made.id, tokens[lowest.at].begin, tokens[right].end};
    is_gone[right] = true;
    next[lowest.at] = next[right];
    if (next[right] != kEnd) previous[next[right]] = lowest.at;
    offer(lowest.at);
    if (previous[lowest.at] != kEnd) offer(previous[lowest.at]);
  }
  size_t kept = 0;
  for (uint32_t at = 0; at < count; ++at)
    if (!is_gone[at]) tokens[kept++] = tokens[at];
  tokens.resize(kept);
}

}  // namespace gxp
