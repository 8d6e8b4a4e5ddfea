// The documents of a file, one after another, whatever its kind. open_documents.h opens one.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/config/data_config.h"

namespace gxp {

// What a file's documents are.
//   kText    text for a tokenizer: UTF-8 out of JSON; of a text file its bytes as they are
//   kChat    the text of one JSON object, which holds a chat, or a prompt and its completion
//   kTokens  token ids
enum class DocumentForm { kText, kChat, kTokens };

// What holds them.
//   kPlainText, kJson   text, which may be compressed
//   kStream             token ids of any number of documents
//   kRows               token ids, a document in each row
//   kIndexed            token ids whose documents an index tells
enum class DocumentContainer { kPlainText, kJson, kStream, kRows, kIndexed };

// What opening a file tells of its documents.
struct DocumentTraits {
  DocumentForm form = DocumentForm::kText;
  DocumentContainer container = DocumentContainer::kPlainText;
  bool are_pairs = false;  // kChat: of a prompt and its completion
  bool several = false;    // the file says where each begins, so that rows may hold several
};

struct DocumentView {
  uint64_t number = 0;         // in the file, from 0
  uint64_t line = 0;           // where it begins in a file of JSON, from 1; 0 of other kinds
  std::string_view text = {};  // kText, kChat
  std::span<const int32_t> tokens = {};  // kTokens
  // kTokens of rows that have labels: for each token its own id, or -100 if it is not to be
  // predicted. Else empty.
  std::span<const int32_t> labels = {};
};

struct DocumentOptions {
  DataFormat format = DataFormat::kAuto;  // data.format
  std::string field = {};                 // data.field
  std::string separator = {};             // data.document_separator
  // Of streams of token ids that record no documents: a document ends behind each such token.
  // Nothing: the stream is one document.
  std::optional<int32_t> end_token = {};
  uint64_t row_tokens = 0;  // of .i32 files, which do not record it: data.sequence + 1; 0: one row
  int vocab_size = std::numeric_limits<int32_t>::max();
};

// Threads: one at a time. Cost: memory of one to two times the largest document, 1 MiB at least;
// what is read is read once.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;

  [[nodiscard]] const std::string& path() const { return path_; }
  // In words: "JSON lines, field text", "chats, messages, gzip", "llm.c shard of 16 bits".
  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] DocumentForm form() const { return traits_.form; }
  [[nodiscard]] const DocumentTraits& traits() const { return traits_; }
  // The next one, valid until the next call; nothing at the end. Errors: kIo; kCorrupt, naming the
  // file and the place, as open_documents() says.
  virtual std::optional<DocumentView> next() = 0;
  // For progress: how much of the file has been read, in the bytes that it has on disk.
  [[nodiscard]] virtual uint64_t consumed() const = 0;
  // "a.jsonl, line 7", "a.txt, document 3" (from 1), "a.txt" if there is only one.
  [[nodiscard]] virtual std::string place_of(const DocumentView& document) const;

 protected:
  DocumentReader(std::string path, std::string kind, const DocumentTraits& traits);

 private:
  std::string path_, kind_;
  DocumentTraits traits_;
};

}  // namespace gxp
