#include "lib/data/dataset.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/documents/open_documents.h"
#include "lib/data/files/path_list.h"

namespace gxp {
namespace {

// Most systems allow a process 1,024 open files, and connections to peers count as such. Opening a
// file for each of its samples takes 2 us more on a local disk.
constexpr size_t kMostOpenFiles = 128;

// For fingerprints: 16 MiB in all, so that thousands of files on a network disk take seconds.
constexpr size_t kMostHashedBlocks = 4096;

std::unique_ptr<const SampleFile> open_samples(const std::string& path, RunEncoder& encoder,
                                               DocumentPart part, bool keep_open) {
  const RunConfig& run = encoder.run();
  const DataKind kind = kind_of(path, run.data.format);
  const SampleShape shape{int(row_positions(run)), run.model.vocab_size,
                          holds_text(kind) ? std::nullopt : encoder.end_of_stream()};
  const bool may_be_bytes = kind == DataKind::kText && reads_bytes(run);
  const bool is_bytes =
      may_be_bytes && is_read_as_bytes(*open_documents(path, document_options(run)), run);
  if (holds_text(kind) && !is_bytes)
    return samples_of(tokenize_file(path, {run, encoder.get(), part}), shape);
  if (part != DocumentPart::kAll)
    fail(ErrorKind::kConfig,
         "data.validation_split: gxp parts the documents of JSON lines, chats and text with "
         "data.document_separator, and {} is none of them; name files in data.valid",
         path);
  return samples_of(TokenFile(path, keep_open, run.data.format), shape);
}

}  // namespace

const DocumentEncoder& RunEncoder::get() {
  if (!encoder_) encoder_ = std::make_unique<const DocumentEncoder>(run_);
  return *encoder_;
}

std::optional<int32_t> RunEncoder::end_of_stream() {
  const std::string& token = run_.data.end_token;
  if (token.empty()) return std::nullopt;
  int32_t id = 0;
  const auto [rest, error] = std::from_chars(token.data(), token.data() + token.size(), id);
  const bool is_id = error == std::errc() && rest == token.data() + token.size();
  return is_id ? id : get().end_token();
}

Dataset::Dataset(const std::vector<std::string>& paths, RunEncoder& encoder,
                 const std::string& setting, DocumentPart part)
    : sequence_(int(row_positions(encoder.run()))) {
  if (paths.empty()) fail(ErrorKind::kConfig, "{}: the list is empty; name a file", setting);
  std::vector<std::vector<std::string>> entries;
  size_t count = 0;
  for (const std::string& path : paths)
    count += entries.emplace_back(expand_path(path, setting)).size();
  for (const std::vector<std::string>& entry : entries) {
    for (const std::string& path : entry) {
      files_.push_back(open_samples(path, encoder, part, count <= kMostOpenFiles));
      first_samples_.push_back(first_samples_.back() + files_.back()->sample_count());
    }
    entries_.push_back(first_samples_.back());
  }
}

std::vector<DataFingerprint> Dataset::fingerprints() const {
  const size_t blocks = std::clamp<size_t>(kMostHashedBlocks / files_.size(), 2, 64);
  std::vector<DataFingerprint> fingerprints;
  for (const auto& file : files_) fingerprints.push_back(file->fingerprint(blocks));
  return fingerprints;
}

Dataset::Place Dataset::find(uint64_t sample) const {
  GXP_ASSERT(sample < sample_count());
  const auto next = std::upper_bound(first_samples_.begin(), first_samples_.end(), sample);
  const auto index = size_t(next - first_samples_.begin()) - 1;
  return {*files_[index], sample - first_samples_[index]};
}

void Dataset::read(uint64_t sample, std::span<int32_t> tokens, std::span<int32_t> labels) const {
  const auto length = size_t(sequence_) + 1;
  GXP_ASSERT(tokens.size() == length && labels.size() == length);
  const auto& [file, index] = find(sample);
  file.read(index, tokens, labels);
}

uint64_t Dataset::count_targets(uint64_t sample) const {
  const auto& [file, index] = find(sample);
  return file.count_targets(index);
}

bool Dataset::has_documents() const {
  return std::ranges::any_of(files_, [](const auto& file) { return file->has_documents(); });
}

void Dataset::read_document_begins(uint64_t sample, std::span<int32_t> begins) const {
  const auto& [file, index] = find(sample);
  file.read_document_begins(index, begins);
}

}  // namespace gxp
