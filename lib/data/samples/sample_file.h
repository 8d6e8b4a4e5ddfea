// The samples of one file of a dataset, numbered from 0. A sample is sequence + 1 tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/data/corpus/tokenized_file.h"
#include "lib/data/files/token_file.h"

namespace gxp {

// Shows whether two files hold the same data: ranks compare theirs, and a resumed run compares its
// own with the checkpoint's.
struct DataFingerprint {
  std::string path;
  std::string kind;  // in words, then " with labels" if rows have them
  uint64_t bytes = 0;
  uint64_t tokens = 0;
  std::string hash;        // hash_hex() of blocks spread over the file, or of all that it holds
  uint64_t rows = 0;       // 0: a stream
  uint64_t documents = 0;  // 0: it does not record them
};

// Threads: const functions from any. Errors: as Dataset's functions of the same names.
class SampleFile {
 public:
  virtual ~SampleFile() = default;

  [[nodiscard]] virtual uint64_t sample_count() const = 0;
  virtual void read(uint64_t sample, std::span<int32_t> tokens,
                    std::span<int32_t> labels) const = 0;
  [[nodiscard]] virtual uint64_t count_targets(uint64_t sample) const = 0;
  // Whether the file says where documents begin. If not, a sample is of one document.
  [[nodiscard]] virtual bool has_documents() const = 0;
  virtual void read_document_begins(uint64_t sample, std::span<int32_t> begins) const = 0;
  [[nodiscard]] virtual DataFingerprint fingerprint(size_t most_blocks) const = 0;
};

struct SampleShape {
  int sequence = 0;
  int vocab_size = 0;
  // Of a stream of ids that records no documents: each of them ends behind this token.
  std::optional<int32_t> end_token;
};

// kConfig: too short for one sample, or rows of another length; kCorrupt: not whole rows.
std::unique_ptr<SampleFile> samples_of(TokenFile file, const SampleShape& shape);
std::unique_ptr<SampleFile> samples_of(TokenizedFile file, const SampleShape& shape);

}  // namespace gxp
