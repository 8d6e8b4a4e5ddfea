// Opens a file of any kind that gxp reads, as documents.
#pragma once

#include <memory>
#include <string>

#include "lib/data/documents/document_reader.h"

namespace gxp {

// The kind is told by content, or by name if the content is ambiguous (file_kind.h, which also says
// what is refused). Text is JSON lines or one JSON array if it begins with an object or with an array
// of objects, or is named .jsonl, .ndjson or .json; data.format = "text" makes it plain text.
// A byte order mark of UTF-8 at the beginning of text is skipped.
// Errors, besides those of the file's kind (json_documents.h, text_documents.h, token_documents.h):
// kIo; kCorrupt: of no such kind, without a document, or named .jsonl but not JSON lines.
std::unique_ptr<DocumentReader> open_documents(const std::string& path,
                                               const DocumentOptions& options = {});

}  // namespace gxp
