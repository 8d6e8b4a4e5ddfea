#include "lib/text/pipeline/bpe_tokenizer.h"

#include <algorithm>
#include <mutex>

#include "lib/base/error.h"
#include "lib/text/unicode/valid_utf8.h"

namespace gxp {
namespace {

// What one call of encode() works with; kept for the next one.
struct EncoderMemory {
  TextBuilder valid;
  NormalizerMemory normalizer;
  WordList words;
  BpeMemory bpe;
  std::vector<TextPiece> pieces, normalized_pieces;
  bool follows = false;
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(TokenizerParts parts)
      : normalizer_(std::move(parts.normalizer)),
        steps_(std::move(parts.pre_tokenizer)),
        word_rules_(parts.word_rules),
        asks_for_source_(parts.asks_for_source),
        raw_(those(parts.added, false)),
        normalized_(those(parts.added, true)),
        is_byte_level_(parts.model.is_byte_level),
        falls_back_(parts.model.falls_back_to_bytes),
        bpe_(std::move(parts.model)),
        decoder_(std::move(parts.decoder)),
        ids_(std::move(parts.ids)),
        prefix_(std::move(parts.prefix)),
        suffix_(std::move(parts.suffix)),
        digest_(std::move(parts.digest)) {}

  void encode(std::string_view text, std::vector<int32_t>& ids,
              std::vector<ByteSpan>* spans) const override {
    if (text.size() > UINT32_MAX)
      fail(ErrorKind::kConfig, "encode a text of {} bytes: 4 GiB is the limit for one",
           text.size());
    std::unique_ptr<EncoderMemory> memory = take_memory();
    const bool is_valid = is_valid_utf8(text);
    memory->follows = spans != nullptr || !is_valid || asks_for_source_;
    memory->words.follows = memory->follows;
    memory->words.invalid_source = is_valid || !bpe_.keeps_bytes() ? "" : text;
    TextView whole = {text, {}, 0};
    if (!is_valid) {
      memory->valid.clear(true);
      append_valid_utf8(text, memory->valid);
      whole = memory->valid.view();
    }
    encode_raw(whole, *memory, {ids, spans});
    give_back(std::move(memory));
  }

  [[nodiscard]] std::unique_ptr<TokenDecoder> decoder(bool skip_special) const override {
    return make_token_decoder(decoder_, skip_special);
  }
  [[nodiscard]] int32_t vocabulary_end() const override { return int32_t(decoder_.exists.size()); }
  [[nodiscard]] std::optional<int32_t> find(std::string_view token) const override {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] const std::vector<int32_t>& prefix() const override { return prefix_; }
  [[nodiscard]] const std::vector<int32_t>& suffix() const override { return suffix_; }
  [[nodiscard]] std::string digest() const override { return digest_; }
  [[nodiscard]] std::string description() const override {
    return fmt::format("{}, {} tokens",
                       is_byte_level_ ? "byte-level BPE"
                       : falls_back_  ? "BPE with byte fallback"
                                      : "BPE",
                       std::ranges::count(decoder_.exists, true));
  }

 private:
  // Special ones first, as the library has them: of two with the same content the first counts.
  AddedTokens those(const std::vector<AddedToken>& added, bool are_normalized) {
    std::vector<AddedToken> tokens;
    NormalizerMemory memory;
    for (const bool is_special : {true, false})
      for (AddedToken token : added) {
        if (token.is_special != is_special || token.is_normalized != are_normalized) continue;
        if (are_normalized)
          token.content = normalizer_.apply({token.content, {}, 0}, false, memory).text;
        tokens.push_back(std::move(token));
      }
    return AddedTokens(std::move(tokens));
  }

  void encode_raw(TextView text, EncoderMemory& memory, TokenSink out) const {
    memory.pieces.clear();
    raw_.cut(text.text, memory.pieces);
    for (const TextPiece& piece : memory.pieces) {
      const TextView view = text.part(piece.begin, piece.end);
      if (piece.id)
        put(*piece.id, view, out);
      else
        encode_normalized(normalizer_.apply(view, memory.follows, memory.normalizer), memory, out);
    }
  }

  void encode_normalized(TextView text, EncoderMemory& memory, TokenSink out) const {
    memory.normalized_pieces.clear();
    normalized_.cut(text.text, memory.normalized_pieces);
    for (const TextPiece& piece : memory.normalized_pieces) {
      const TextView view = text.part(piece.begin, piece.end);
      if (piece.id)
        put(*piece.id, view, out);
      else
        encode_words(view, memory, out);
    }
  }

  static void put(int32_t id, TextView token, TokenSink out) {
    out.ids.push_back(id);
    if (out.spans != nullptr) out.spans->push_back(token.source(0, token.size()));
  }

  static void check_size(size_t bytes) {
    if (bytes > UINT32_MAX)
      fail(ErrorKind::kConfig, "encode a text of {} bytes: 4 GiB is the limit for one", bytes);
  }

  void encode_words(TextView text, EncoderMemory& memory, TokenSink out) const {
    check_size(text.size());
    WordList& list = memory.words;
    if (word_rules_ != nullptr && list.invalid_source.empty()) {
      for (size_t at = 0, end = 0; at < text.size(); at = end) {
        end = word_end(*word_rules_, text.text, at);
        bpe_.encode(text.part(at, end), memory.bpe, out);
      }
      return;
    }
    list.text = text;
    list.words.assign(1, {0, uint32_t(text.size())});
    list.is_mapped = false;
    for (const auto& step : steps_) {
      step->apply(list);
      check_size(list.text.size());
    }
    if (!list.invalid_source.empty() && !list.is_mapped) restore_bytes(list);
    for (const ByteSpan& word : list.words)
      bpe_.encode(list.text.part(word.begin, word.end), memory.bpe, out);
  }

  std::unique_ptr<EncoderMemory> take_memory() const {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<EncoderMemory>();
    std::unique_ptr<EncoderMemory> memory = std::move(idle_.back());
    idle_.pop_back();
    return memory;
  }
  void give_back(std::unique_ptr<EncoderMemory> memory) const {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(memory));
  }

  Normalizer normalizer_;
  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  const WordRules* word_rules_;
  bool asks_for_source_;
  AddedTokens raw_, normalized_;
  bool is_byte_level_, falls_back_;
  Bpe bpe_;
  DecoderRules decoder_;
  VocabularyIds ids_;
  std::vector<int32_t> prefix_, suffix_;
  std::string digest_;
  mutable std::mutex mutex_;  // for idle_
  mutable std::vector<std::unique_ptr<EncoderMemory>> idle_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_bpe_tokenizer(TokenizerParts parts) {
  return std::make_shared<BpeTokenizer>(std::move(parts));
}

}  // namespace gxp
