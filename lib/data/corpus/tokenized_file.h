// A file of text or chats whose tokens are in a cache: it is tokenized once, by all cores, and later
// runs and the other ranks of a host read the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/config/data_config.h"
#include "lib/data/corpus/document_encoder.h"
#include "lib/data/documents/document_reader.h"
#include "lib/data/documents/token_cache.h"

namespace gxp {

// Which documents of a file: data.validation_split parts them.
enum class DocumentPart { kAll, kTraining, kValidation };

struct TokenizedFile {
  std::string path;  // of the text
  std::string kind;  // DocumentReader::kind()
  uint64_t bytes = 0;
  bool has_documents = false;  // DocumentTraits::several
  TokenCache cache;
};

struct TokenizeRequest {
  const RunConfig& run;
  const DocumentEncoder& encoder;
  DocumentPart part = DocumentPart::kAll;
};

// How open_documents() reads the files of the run. `end_token`: of streams of ids.
DocumentOptions document_options(const RunConfig& run, std::optional<int32_t> end_token = {});

// Whether it is one text, each byte of which is a token, so that nothing is tokenized.
bool is_read_as_bytes(const DocumentReader& reader, const RunConfig& run);

// Where caches lie: data.cache; else "tokens" beside checkpoint.dir; else gxp/tokens in the user's
// directory of caches. kConfig: there is none.
std::string cache_directory(const RunConfig& run);

// The cache of the file at `path`, which is tokenized first if there is none of this content, this
// tokenizer and these settings. Of several processes on a host (or where the file system's locks
// reach) one tokenizes while the others wait for it; if it dies, the next one does it. Lines of the
// log tell of both; on a terminal, progress is shown.
// Errors: those of open_documents(), of the encoder, and of token_cache.h; kCorrupt: the part has no
// document, or the file was changed while it was tokenized. Cost: one process of a host reads the
// file and its cache once, to know the one and check the other; later ones read neither, as long as
// both have the same stamp (file_record.h).
TokenizedFile tokenize_file(const std::string& path, const TokenizeRequest& request);

}  // namespace gxp
