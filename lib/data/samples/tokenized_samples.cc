#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/data/samples/sample_file.h"
#include "lib/data/samples/windows.h"

namespace gxp {
namespace {

class TokenizedSamples final : public SampleFile {
 public:
  TokenizedSamples(TokenizedFile file, const SampleShape& shape)
      : file_(std::move(file)),
        sequence_(uint64_t(shape.sequence)),
        vocab_size_(shape.vocab_size),
        samples_(count_windows(file_.path, file_.cache.token_count(), shape.sequence)) {}

  [[nodiscard]] uint64_t sample_count() const override { return samples_; }

  void read(uint64_t sample, std::span<int32_t> tokens, std::span<int32_t> labels) const override {
    file_.cache.read(sample * sequence_, tokens);
    if (file_.cache.form().vocabulary_end > vocab_size_) check_ids(tokens);
    std::ranges::copy(tokens, labels.begin());
    if (!file_.cache.form().has_trained) return;
    const std::vector<uint8_t> trained = read_trained(sample);
    for (size_t i = 0; i < labels.size(); ++i)
      if (trained[i] == 0) labels[i] = kNoLabel;
  }

  [[nodiscard]] uint64_t count_targets(uint64_t sample) const override {
    if (!file_.cache.form().has_trained) return sequence_;
    const std::vector<uint8_t> trained = read_trained(sample);
    return uint64_t(std::count(trained.begin() + 1, trained.end(), uint8_t{1}));
  }

  [[nodiscard]] bool has_documents() const override { return file_.has_documents; }

  void read_document_begins(uint64_t sample, std::span<int32_t> begins) const override {
    find_begins(
        sample * sequence_, begins,
        [this](uint64_t token) { return file_.cache.document_of(token); },
        [this](uint64_t document) { return file_.cache.document_begin(document); });
  }

  [[nodiscard]] DataFingerprint fingerprint(size_t /*most_blocks*/) const override {
    return {.path = file_.path,
            .kind = file_.kind,
            .bytes = file_.bytes,
            .tokens = file_.cache.token_count(),
            .hash = file_.cache.form().key,
            .documents = file_.cache.document_count()};
  }

 private:
  [[nodiscard]] std::vector<uint8_t> read_trained(uint64_t sample) const {
    std::vector<uint8_t> trained(sequence_ + 1);
    file_.cache.read_trained(sample * sequence_, trained);
    return trained;
  }

  // Of bytes, where the model has fewer than 256 tokens.
  void check_ids(std::span<const int32_t> tokens) const {
    const auto bad = std::ranges::find_if(tokens, [&](int32_t id) { return id >= vocab_size_; });
    if (bad != tokens.end())
      fail(ErrorKind::kCorrupt, "read tokens from {}: it has token {}, but model.vocab_size is {}",
           file_.path, *bad, vocab_size_);
  }

  TokenizedFile file_;
  uint64_t sequence_;
  int vocab_size_;
  uint64_t samples_;
};

}  // namespace

std::unique_ptr<SampleFile> samples_of(TokenizedFile file, const SampleShape& shape) {
  return std::make_unique<TokenizedSamples>(std::move(file), shape);
}

}  // namespace gxp
