// Tokenizes the documents of a file on all cores, in their order.
#pragma once

#include "lib/data/corpus/tokenized_file.h"
#include "lib/data/documents/document_reader.h"
#include "lib/data/documents/token_cache.h"

namespace gxp {

// Packs the documents of `request.part` and adds them to `writer`. Each of as many threads as this
// process may use cores reads some, tokenizes them, and writes them when its turn has come.
// Errors: those of the reader, the encoder and the writer; of several, that of the first document.
void tokenize(DocumentReader& reader, const TokenizeRequest& request, TokenCacheWriter& writer);

}  // namespace gxp
