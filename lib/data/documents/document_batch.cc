#include "lib/data/documents/document_batch.h"

#include <span>

namespace gxp {

DocumentBatch DocumentBatch::read(DocumentReader& reader, size_t bytes) {
  DocumentBatch batch;
  while (batch.empty() || batch.text_.size() + batch.tokens_.size() * sizeof(int32_t) < bytes) {
    const auto document = reader.next();
    if (!document) break;
    batch.add(*document);
  }
  return batch;
}

void DocumentBatch::add(const DocumentView& document) {
  Held held{.number = document.number,
            .line = document.line,
            .text_begin = text_.size(),
            .text_end = text_.size() + document.text.size(),
            .token_begin = tokens_.size(),
            .token_end = tokens_.size() + document.tokens.size(),
            .has_labels = !document.labels.empty()};
  text_ += document.text;
  tokens_.insert(tokens_.end(), document.tokens.begin(), document.tokens.end());
  labels_.insert(labels_.end(), document.labels.begin(), document.labels.end());
  labels_.resize(tokens_.size());
  documents_.push_back(held);
}

DocumentView DocumentBatch::operator[](size_t i) const {
  const Held& held = documents_[i];
  const size_t tokens = held.token_end - held.token_begin;
  DocumentView document{.number = held.number, .line = held.line};
  document.text = std::string_view(text_).substr(held.text_begin, held.text_end - held.text_begin);
  document.tokens = std::span(tokens_).subspan(held.token_begin, tokens);
  if (held.has_labels) document.labels = std::span(labels_).subspan(held.token_begin, tokens);
  return document;
}

}  // namespace gxp
