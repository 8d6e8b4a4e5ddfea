#include "lib/data/dataset.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/files/path_list.h"

namespace gxp {
namespace {

// Most systems allow a process 1,024 open files, and connections to peers count as such. Opening a
// file for each of its samples takes 2 us more on a local disk.
constexpr size_t kMostOpenFiles = 128;

// For fingerprints: 16 MiB in all, so that thousands of files on a network disk take seconds.
constexpr size_t kMostHashedBlocks = 4096;

// The ids of bytes are 0 to 255: with any other vocabulary, text was hardly meant to be bytes.
constexpr int kByteVocabulary = 256;

}  // namespace

Dataset::Dataset(const std::vector<std::string>& paths, int sequence, int vocab_size,
                 const std::string& setting, TextTokens tokenizer)
    : sequence_(sequence), vocab_size_(vocab_size) {
  if (paths.empty()) fail(ErrorKind::kConfig, "{}: the list is empty; name a file", setting);
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const std::vector<std::string> found = expand_path(path, setting);
    names.insert(names.end(), found.begin(), found.end());
  }
  for (std::string& name : names) {
    const TokenFile& file = files_.emplace_back(std::move(name), names.size() <= kMostOpenFiles);
    if (file.kind() == DataKind::kText && tokenizer == TextTokens::kAuto &&
        vocab_size != kByteVocabulary)
      fail(
          ErrorKind::kConfig,
          "{}: {} is text, whose bytes are tokens 0 to 255, but model.vocab_size is {}; convert it "
          "to token ids (a .npy array, llm.c's .bin), or set data.tokenizer = \"byte\" if bytes "
          "are meant",
          setting, file.path(), vocab_size);
    first_samples_.push_back(first_samples_.back() + samples_of(file));
  }
}

std::vector<DataFingerprint> Dataset::fingerprints() const {
  const size_t blocks = std::clamp<size_t>(kMostHashedBlocks / files_.size(), 2, 64);
  std::vector<DataFingerprint> fingerprints;
  for (const TokenFile& file : files_)
    fingerprints.push_back(
        {.path = file.path(),
         .kind = std::string(to_string(file.kind())) + (file.has_labels() ? " with labels" : ""),
         .bytes = file.bytes(),
         .tokens = file.token_count(),
         .hash = file.hash(blocks),
         .rows = file.has_rows() ? samples_of(file) : 0});
  return fingerprints;
}

uint64_t Dataset::samples_of(const TokenFile& file) const {
  const uint64_t tokens = file.token_count();
  const uint64_t row = uint64_t(sequence_) + 1;
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
  if (tokens < row)
    fail(ErrorKind::kConfig,
         "read tokens from {}: {} tokens, but one sample takes {} (data.sequence + 1)", file.path(),
         tokens, row);
  return file.has_rows() ? tokens / row : (tokens - 1) / uint64_t(sequence_);
}

Dataset::Place Dataset::find(uint64_t sample) const {
  GXP_ASSERT(sample < sample_count());
  const auto next = std::upper_bound(first_samples_.begin(), first_samples_.end(), sample);
  const auto index = size_t(next - first_samples_.begin()) - 1;
  return {files_[index], sample - first_samples_[index]};
}

void Dataset::read(uint64_t sample, std::span<int32_t> tokens, std::span<int32_t> labels) const {
  const auto length = size_t(sequence_);
  GXP_ASSERT(tokens.size() == length + 1 && labels.size() == length + 1);
  const auto& [file, index] = find(sample);
  file.read(index * (file.has_rows() ? length + 1 : length), length + 1, vocab_size_,
            tokens.data());
  if (file.has_labels())
    file.read_labels(index, tokens, labels.data());
  else
    std::ranges::copy(tokens, labels.begin());
}

void Dataset::read_document_begins(uint64_t /*sample*/, std::span<int32_t> /*begins*/) const {
  GXP_ASSERT(has_documents());
}

uint64_t Dataset::count_targets(uint64_t sample) const {
  const auto& [file, index] = find(sample);
  return file.has_labels() ? file.count_targets(index) : uint64_t(sequence_);
}

}  // namespace gxp
