// Text into tokens and back, with the ids of the original libraries.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/byte_span.h"

namespace gxp {

// Gives the bytes of tokens one after another. Threads: one at a time. The tokenizer outlives it.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // The bytes that this token adds; a character may be spread over several tokens. An id without a
  // token adds none, as in the original libraries.
  virtual std::string put(int32_t id) = 0;
};

// Immutable. Threads: any, at the same time.
//
// Text is bytes. Where it is UTF-8, ids are those of the original library (tokenizers 0.23,
// tiktoken, SentencePiece). That library cannot be given other bytes; a tokenizer of bytes, or with
// a fallback to bytes, encodes them as they are, so that decode() gives them back. In all steps
// before that, and in a tokenizer of another kind, they count as U+FFFD, one for each maximal part
// of an invalid sequence. A caller that wants the ids of such text in Python (errors="replace")
// encodes with_valid_utf8() of it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Appends the ids of `text`. Added tokens, special ones too, are recognised in it; what the
  // post-processor puts around a text is not added. `spans`: appends to it where each token's bytes
  // lie in `text`, in about twice the time; a character that a normaliser has made of several has
  // the place of all of them, and what it has put in has an empty one.
  // kConfig: a text of 4 GiB or more, or one that costs a pattern too many steps.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids,
                      std::vector<ByteSpan>* spans = nullptr) const = 0;
  // The same ids of a large text, by up to so many threads where gxp knows the pattern that cuts it
  // into words, as those of GPT-2, Llama 3, Qwen and tiktoken; else by one.
  virtual void encode_large(std::string_view text, int threads, std::vector<int32_t>& ids) const {
    static_cast<void>(threads);
    encode(text, ids);
  }
  // As the library's decoder has it, but for bytes that are not UTF-8, which are kept, and for added
  // tokens of a byte-level tokenizer, which are their text. skip_special: without special tokens.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;
  // The same token by token.
  [[nodiscard]] virtual std::unique_ptr<TokenDecoder> decoder(bool skip_special = false) const = 0;
  // The largest id, + 1.
  [[nodiscard]] virtual int32_t vocabulary_end() const = 0;
  // The id of a token (special, added or ordinary) by its text in the file.
  [[nodiscard]] virtual std::optional<int32_t> find(std::string_view token) const = 0;
  // What the post-processor puts around a text.
  [[nodiscard]] virtual const std::vector<int32_t>& prefix() const = 0;
  [[nodiscard]] virtual const std::vector<int32_t>& suffix() const = 0;
  // hash_hex() of all that ids depend on.
  [[nodiscard]] virtual std::string digest() const = 0;
  // "byte-level BPE, 50257 tokens"
  [[nodiscard]] virtual std::string description() const = 0;
};

// `path` is a file (tokenizer.json, tokenizer.model, NAME.tiktoken) or a directory, of which the
// first counts that it has: tokenizer.json; vocab.json with merges.txt; tokenizer.model, of
// SentencePiece or of tiktoken; one NAME.tiktoken.
// kIo: no such file; kCorrupt: one that is invalid; kConfig: what gxp does not compute, by name.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path);

}  // namespace gxp
