// Documents in files of token ids.
#pragma once

#include <memory>
#include <string>

#include "lib/data/documents/document_reader.h"

namespace gxp {

// Opens a file of ids: its documents are Megatron's by the index, the rows of files that have rows,
// or the pieces of a stream up to and with each options.end_token. Errors: those of TokenFile and
// its read(); kConfig, from next(): a document of more than 2^29 tokens.
std::unique_ptr<DocumentReader> read_token_documents(const std::string& path,
                                                     const DocumentOptions& options);

}  // namespace gxp
