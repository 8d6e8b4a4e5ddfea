#include "lib/text/pipeline/bpe_tokenizer.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/text/utf8.h"
#include "lib/base/thread.h"
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
  int threads = 1;
};

constexpr size_t kLeastPart = size_t{1} << 20;  // of a text, for a thread

// What a thread makes of a part of a text, whose first word may begin within a word of the text.
struct EncodedPart {
  // A word may begin there; `ids` come before it.
  struct Start {
    size_t at = 0, ids = 0;
  };
  static constexpr size_t kMostStarts = 1024;

  size_t begin = 0, end = 0;
  std::vector<int32_t> ids;
  std::vector<Start> starts;  // the first ones
  std::exception_ptr error;

  [[nodiscard]] const Start* find(size_t at) const {
    const auto found = std::ranges::lower_bound(starts, at, {}, &Start::at);
    return found != starts.end() && found->at == at ? &*found : nullptr;
  }
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
    encode_by(1, text, {ids, spans});
  }
  void encode_large(std::string_view text, int threads, std::vector<int32_t>& ids) const override {
    encode_by(threads, text, {ids, nullptr});
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
  AddedTokens those(const std::vector<AddedToken>& added, bool are_normalized) {
    std::vector<AddedToken> tokens;
    NormalizerMemory memory;
    for (AddedToken token : added) {
      if (token.is_normalized != are_normalized) continue;
      if (are_normalized)
        token.content = normalizer_.apply({token.content, {}, 0}, false, memory).text;
      tokens.push_back(std::move(token));
    }
    return AddedTokens(std::move(tokens));
  }

  void encode_by(int threads, std::string_view text, TokenSink out) const {
    check_size(text.size());
    std::unique_ptr<EncoderMemory> memory = take_memory();
    memory->threads = threads;
    const bool is_valid = is_valid_utf8(text);
    memory->follows = out.spans != nullptr || !is_valid || asks_for_source_;
    memory->words.follows = memory->follows;
    memory->words.invalid_source = is_valid || !bpe_.keeps_bytes() ? "" : text;
    TextView whole = {text, {}, 0};
    if (!is_valid) {
      memory->valid.clear(true);
      append_valid_utf8(text, memory->valid);
      whole = memory->valid.view();
    }
    encode_raw(whole, *memory, out);
    give_back(std::move(memory));
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
      const size_t parts = std::min(size_t(memory.threads), text.size() / kLeastPart);
      if (parts > 1) return encode_parts(text, parts, memory, out);
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

  // A word's end depends on what follows its beginning alone: where two threads have found the same
  // beginning, all further words are the same. So the words of a part count from the first that
  // begins where one of the words before it ends; those between are encoded here.
  void encode_parts(TextView text, size_t count, EncoderMemory& memory, TokenSink out) const {
    std::vector<EncodedPart> parts(count);
    for (size_t i = 0; i < count; ++i) {
      size_t begin = text.size() / count * i;
      while (continues_utf8(text.text[begin])) ++begin;
      parts[i].begin = begin;
      if (i > 0) parts[i - 1].end = begin;
    }
    parts.back().end = text.size();
    {
      std::vector<std::jthread> threads;
      for (EncodedPart& part : parts)
        threads.push_back(start_thread("gxp-tokenizer", [&] { encode_part(text, part); }));
    }
    size_t at = 0;
    for (EncodedPart& part : parts) {
      if (part.error) std::rethrow_exception(part.error);
      const EncodedPart::Start* start = part.find(at);
      for (; start == nullptr && at < part.end; start = part.find(at)) {
        const size_t end = word_end(*word_rules_, text.text, at);
        bpe_.encode(text.part(at, end), memory.bpe, out);
        at = end;
      }
      if (start == nullptr) continue;
      out.ids.insert(out.ids.end(), part.ids.begin() + std::ptrdiff_t(start->ids), part.ids.end());
      at = part.end;
      std::vector<int32_t>().swap(part.ids);
    }
  }

  void encode_part(TextView text, EncodedPart& part) const {
    try {
      std::unique_ptr<EncoderMemory> memory = take_memory();
      size_t at = part.begin;
      while (at < part.end) {
        if (part.starts.size() < EncodedPart::kMostStarts)
          part.starts.push_back({at, part.ids.size()});
        const size_t end = word_end(*word_rules_, text.text, at);
        bpe_.encode(text.part(at, end), memory->bpe, {part.ids, nullptr});
        at = end;
      }
      part.end = at;
      give_back(std::move(memory));
    } catch (...) {
      part.error = std::current_exception();
    }
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
