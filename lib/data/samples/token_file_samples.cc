#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/samples/sample_file.h"
#include "lib/data/samples/windows.h"

namespace gxp {
namespace {

// Rows as they are, or windows over a stream.
uint64_t count_samples(const TokenFile& file, int sequence) {
  const uint64_t tokens = file.token_count();
  const uint64_t row = uint64_t(sequence) + 1;
  if (file.row_tokens() > 0 && file.row_tokens() != row)
    fail(ErrorKind::kConfig,
         "read tokens from {}: its rows have {} tokens, but one sample takes {} (data.sequence + "
         "1); set data.sequence to the rows' length - 1, or cut or pad the rows",
         file.path(), file.row_tokens(), row);
  if (file.has_rows() && tokens % row != 0)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: {} tokens are not a multiple of {}, the row length (data.sequence + "
         "1); the file is truncated or was written for another sequence length",
         file.path(), tokens, row);
  const uint64_t windows = count_windows(file.path(), tokens, sequence);
  return file.has_rows() ? tokens / row : windows;
}

class TokenFileSamples final : public SampleFile {
 public:
  TokenFileSamples(TokenFile file, const SampleShape& shape)
      : file_(std::move(file)), shape_(shape), samples_(count_samples(file_, shape.sequence)) {}

  [[nodiscard]] uint64_t sample_count() const override { return samples_; }

  void read(uint64_t sample, std::span<int32_t> tokens, std::span<int32_t> labels) const override {
    file_.read(first_token(sample), tokens.size(), shape_.vocab_size, tokens.data());
    if (file_.has_labels())
      file_.read_labels(sample, tokens, labels.data());
    else
      std::ranges::copy(tokens, labels.begin());
  }

  [[nodiscard]] uint64_t count_targets(uint64_t sample) const override {
    return file_.has_labels() ? file_.count_targets(sample) : uint64_t(shape_.sequence);
  }

  [[nodiscard]] bool has_documents() const override {
    return file_.parts_documents(shape_.end_token);
  }

  void read_document_begins(uint64_t sample, std::span<int32_t> begins) const override {
    if (file_.index()) return read_index(first_token(sample), begins);
    std::ranges::fill(begins, 0);
    if (!has_documents()) return;
    file_.read(first_token(sample), begins.size(), shape_.vocab_size, begins.data());
    int32_t begin = 0;
    for (size_t i = 0; i < begins.size(); ++i)
      if (std::exchange(begins[i], begin) == *shape_.end_token) begin = int32_t(i) + 1;
  }

  [[nodiscard]] DataFingerprint fingerprint(size_t most_blocks) const override {
    return {
        .path = file_.path(),
        .kind = std::string(to_string(file_.kind())) + (file_.has_labels() ? " with labels" : ""),
        .bytes = file_.bytes(),
        .tokens = file_.token_count(),
        .hash = file_.hash(most_blocks),
        .rows = file_.has_rows() ? samples_ : 0,
        .documents = file_.index() ? file_.index()->document_count() : 0};
  }

 private:
  [[nodiscard]] uint64_t first_token(uint64_t sample) const {
    return sample * (uint64_t(shape_.sequence) + (file_.has_rows() ? 1 : 0));
  }

  void read_index(uint64_t first, std::span<int32_t> begins) const {
    const MegatronIndex& index = *file_.index();
    const auto begin_of = [&](uint64_t document) { return index.document_begin(document); };
    // The last document that begins at the token or before it: those without tokens come before.
    const auto document_of = [&](uint64_t token) {
      uint64_t low = 0, high = index.document_count();
      while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        (begin_of(middle) <= token ? low : high) = middle;
      }
      return low;
    };
    find_begins(first, begins, document_of, begin_of);
  }

  TokenFile file_;
  SampleShape shape_;
  uint64_t samples_;
};

}  // namespace

std::unique_ptr<SampleFile> samples_of(TokenFile file, const SampleShape& shape) {
  return std::make_unique<TokenFileSamples>(std::move(file), shape);
}

}  // namespace gxp
