// How the documents of a run become tokens: its tokenizer, its chat template, and the token that
// ends a document.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/config/data_config.h"
#include "lib/config/run_config.h"
#include "lib/data/documents/document_reader.h"
#include "lib/text/tokenizer.h"

namespace gxp {

class ChatTemplate;

struct EncodedDocument {
  std::vector<int32_t> ids;
  std::vector<uint8_t> trained;  // chats: 0 or 1 for each id; else empty: all are trained
  std::string text = {};         // chats: what the ids are of
};

// The directory whose tokenizer a run uses: that of data.tokenizer; for "auto", of model.init or of
// model.config, if it has one. "" for bytes.
std::string tokenizer_path(const RunConfig& run);
// The same, or where that file lies.
std::string tokenizer_directory(const RunConfig& run);
// Whether text becomes tokens byte by byte.
bool reads_bytes(const RunConfig& run);

// Whether tokenizer_of() finds one.
bool has_tokenizer(const RunConfig& run);

// The tokenizer of the run: that of tokenizer_path(), or one of bytes if data.tokenizer is "byte" or
// the vocabulary has 256 tokens. kConfig: there is none; or it has more tokens than the model.
// Errors of open_tokenizer(), too.
std::shared_ptr<const Tokenizer> tokenizer_of(const RunConfig& run);

// Of the directory of the tokenizer; kConfig: text is bytes, or it has none. Errors of
// open_chat_template(), too.
ChatTemplate chat_template_of(const RunConfig& run);
// The token that ends an answer: its eos_token. kConfig: it names none.
int32_t end_of_turn(const RunConfig& run, const Tokenizer& tokenizer);

// Immutable. Threads: any, at the same time.
class DocumentEncoder {
 public:
  // Errors: tokenizer_of()'s; kConfig: data.end_token is no token of the tokenizer, or is not set
  // where no end of text is known.
  explicit DocumentEncoder(const RunConfig& run);
  ~DocumentEncoder();

  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }
  [[nodiscard]] std::optional<int32_t> end_token() const { return end_; }  // of a text
  // The ids of a document of text or a chat, without what pack() adds. Where a document holds the
  // text of a special token, it becomes that token, as in the original libraries. `where` names the
  // document in messages. Errors: kConfig, kCorrupt, naming it.
  [[nodiscard]] EncodedDocument encode(DocumentForm form, const DocumentView& document,
                                       const std::string& where) const;
  // As encode(), with what separates documents in a row: before the ids of a text what the
  // tokenizer puts there (BOS), behind them the end of text. A chat has the tokens of its template
  // alone, a prompt with its completion as a text.
  [[nodiscard]] EncodedDocument pack(DocumentForm form, const DocumentView& document,
                                     const std::string& where) const;
  // A hash of all that pack() depends on.
  [[nodiscard]] std::string digest(DocumentForm form) const;
  // For the log: "byte-level BPE, 50257 tokens; documents end in <|endoftext|>".
  [[nodiscard]] std::string description(DocumentForm form) const;

 private:
  // Whether pack() adds something.
  struct Encoded {
    EncodedDocument document;
    bool is_text = true;
  };
  [[nodiscard]] Encoded encode_any(DocumentForm form, const DocumentView& document,
                                   const std::string& where) const;
  [[nodiscard]] Encoded encode_chat(const DocumentView& document, const std::string& where) const;
  [[nodiscard]] const ChatTemplate& chat_template() const;

  const RunConfig run_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const int threads_;  // for a large text
  std::string end_text_;
  std::optional<int32_t> end_;
  mutable std::once_flag opens_template_;
  mutable std::unique_ptr<const ChatTemplate> chat_template_;  // opened by the first chat
};

}  // namespace gxp
