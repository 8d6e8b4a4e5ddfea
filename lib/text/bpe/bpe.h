// Byte-pair encoding: Sennrich, Haddow & Birch, ACL 2016, with the rules of the tokenizers library
// and of tiktoken and SentencePiece, which are the same loop with other ranks.
//
// A word begins as one token for each of its characters, or bytes. Of all neighbouring pairs that
// merge, that of the lowest rank, of several the leftmost, becomes one token, until none is left.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/text/bpe/merge_table.h"
#include "lib/text/bpe/word_cache.h"
#include "lib/text/unicode/text_view.h"

namespace gxp {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using VocabularyIds = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

struct BpeMerge {
  int32_t left = 0, right = 0;
  MergeResult made;
};

struct BpeModel {
  // By their text: of a byte-level model the bytes; tokens that stand for no bytes are left out.
  VocabularyIds tokens;
  std::vector<BpeMerge> merges;    // of one pair the last one counts
  bool is_byte_level = false;      // else a symbol is a character
  bool takes_whole_words = false;  // a word that is a token is that token, whatever the merges say
  bool falls_back_to_bytes =
      false;                       // characters without a token are those of their bytes, "<0x0A>"
  bool fuses_unknown = false;      // unknown characters side by side are one token
  std::optional<int32_t> unknown;  // nothing: characters without a token vanish
  std::string prefix;              // before each symbol but a word's first
  std::string suffix;              // behind a word's last symbol
};

// A token of a word, and where it lies there.
struct WordToken {
  int32_t id = 0;
  uint32_t begin = 0, end = 0;
};

// Where tokens go.
struct TokenSink {
  std::vector<int32_t>& ids;
  std::vector<ByteSpan>* spans = nullptr;  // as many, or null
};

// Memory of Bpe::encode(), for one thread at a time; of one model.
struct BpeMemory {
  WordCache cache;
  std::vector<WordToken> tokens;
};

// Threads: any, each with its own memory.
class Bpe {
 public:
  explicit Bpe(BpeModel model);
  // Appends the tokens of a word. It may be any bytes: what is not UTF-8 is a symbol for each byte.
  // Cost: n log n; a word that the cache has is one look-up.
  void encode(TextView word, BpeMemory& memory, TokenSink out) const;
  [[nodiscard]] bool keeps_bytes() const {  // whether invalid bytes survive encoding
    return model_.is_byte_level || model_.falls_back_to_bytes;
  }

 private:
  void find_cuts();
  [[nodiscard]] size_t next_cut(std::string_view word, size_t from) const;
  void encode_part(TextView part, BpeMemory& memory, TokenSink out) const;
  void split(std::string_view word, std::vector<WordToken>& tokens) const;
  void split_bytes(std::string_view word, std::vector<WordToken>& tokens) const;
  void merge(std::vector<WordToken>& tokens) const;
  void merge_few(std::vector<WordToken>& tokens) const;
  void merge_many(std::vector<WordToken>& tokens) const;

  BpeModel model_;
  MergeTable merges_;
  static constexpr int32_t kNone = -1;
  std::array<int32_t, 256> fallback_{};  // the token of each byte, or kNone
  // Of a byte-level model: the symbol of a byte in the middle of a word, + 1: its first, + 2: its
  // last, + 3: both.
  std::array<std::array<int32_t, 256>, 4> symbols_{};
  // No token has U+2581 behind any other characters than these, so a word may be cut before that
  // mark and its parts encoded alone. Nothing: words are not cut.
  std::optional<std::vector<bool>> before_mark_;
};

}  // namespace gxp
