// Documents that own what they hold, so that other threads can work on them while their file is read
// on: one thread reads batches, which is faster than any tokenizer, and many tokenize them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/data/documents/document_reader.h"

namespace gxp {

class DocumentBatch {
 public:
  // The next documents of a reader: as many as it takes to have `bytes` of text or of tokens, but
  // one at least; none at the end. Errors: the reader's.
  static DocumentBatch read(DocumentReader& reader, size_t bytes);

  [[nodiscard]] size_t size() const { return documents_.size(); }
  [[nodiscard]] bool empty() const { return documents_.empty(); }
  // Valid as long as the batch lives and is not moved.
  [[nodiscard]] DocumentView operator[](size_t i) const;

 private:
  struct Held {
    uint64_t number, line;
    size_t text_begin, text_end;
    size_t token_begin, token_end;
    bool has_labels;
  };
  void add(const DocumentView& document);

  std::string text_;
  std::vector<int32_t> tokens_, labels_;  // of documents without labels: none, at their place
  std::vector<Held> documents_;
};

}  // namespace gxp
