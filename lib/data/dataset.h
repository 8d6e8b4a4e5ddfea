// The samples of a list of files, numbered from 0 in the order of the list.
//
// A sample is sequence + 1 consecutive tokens of one file: the first `sequence` are the inputs, the
// last `sequence` the targets. Streams (text, chats, llm.c shards) are cut into windows at every
// `sequence`-th token, so that neighbours share one token and each token but the first is a target
// once; what is left at the end of a file is not used. A row of a file of rows is a sample as it is.
// Where rows have labels, or a chat has parts that are not trained, such a target does not count: the
// loss is the mean over those that do. Elsewhere each target counts.
//
// Text is read byte by byte if the run's tokenizer is that of bytes and the file is plain text. Else
// its documents are tokenized first (corpus/tokenized_file.h), one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/data/samples/sample_file.h"

namespace gxp {

// The tokenizer of a run, which is opened for the first file that needs it.
class RunEncoder {
 public:
  explicit RunEncoder(const RunConfig& run) : run_(run) {}
  // Errors: DocumentEncoder's.
  const DocumentEncoder& get();
  // data.end_token, a token or its id, which a stream of ids has behind each document; nothing if it
  // is not set.
  std::optional<int32_t> end_of_stream();
  [[nodiscard]] const RunConfig& run() const { return run_; }

 private:
  const RunConfig run_;
  std::unique_ptr<const DocumentEncoder> encoder_;
};

// Threads: const functions from any.
// Overridden where rows hold several documents, one behind the other.
class Dataset {
 public:
  // `paths` are files, directories (all their files, by name) or patterns with *, ? and [] (all
  // matches, by name); the order of the list is kept. `setting` names the list in messages:
  // "data.train". Of a part of documents, each file must have some, that it records. Errors, besides
  // TokenFile's and tokenize_file()'s: kConfig an empty list, a pattern or directory without a file,
  // a file too short for one sample or with rows of another length, or whose documents cannot be
  // parted; kCorrupt a .i32 file that is not whole rows.
  Dataset(const std::vector<std::string>& paths, RunEncoder& encoder,
          const std::string& setting = "data.train", DocumentPart part = DocumentPart::kAll);
  virtual ~Dataset() = default;

  [[nodiscard]] uint64_t sample_count() const { return first_samples_.back(); }
  [[nodiscard]] int sequence() const { return sequence_; }
  // The first sample of each entry of `paths`, then the count of all.
  [[nodiscard]] const std::vector<uint64_t>& entries() const { return entries_; }
  // One per file, in order. Reads up to 4,096 blocks of 4 KiB over all files, at least two of each.
  // kIo, kCorrupt.
  [[nodiscard]] std::vector<DataFingerprint> fingerprints() const;
  // Fills `tokens` and `labels`, of sequence() + 1 elements each; a label is its token, or kNoLabel.
  // `sample` < sample_count(). kCorrupt on a token id that the vocabulary does not have, any other
  // label, or a file that has been cut; kIo.
  void read(uint64_t sample, std::span<int32_t> tokens, std::span<int32_t> labels) const;
  // How many of the sample's targets count, up to sequence(). Cost: reads labels where there are
  // some, else nothing. Errors: kCorrupt a file that has been cut; kIo.
  [[nodiscard]] uint64_t count_targets(uint64_t sample) const;

  // Whether a file says where documents begin.
  [[nodiscard]] virtual bool has_documents() const;
  // Fills `begins`, of sequence() + 1 elements: for each position of the sample, that where its
  // document begins, 0 if that is before the sample. Only with has_documents(). Errors: as read().
  virtual void read_document_begins(uint64_t sample, std::span<int32_t> begins) const;

 private:
  struct Place {
    const SampleFile& file;
    uint64_t index;  // of the sample, among the file's
  };
  [[nodiscard]] Place find(uint64_t sample) const;

  int sequence_;
  std::vector<std::unique_ptr<const SampleFile>> files_;
  // The number of the first sample of each file, then the count of all.
  std::vector<uint64_t> first_samples_ = {0};
  std::vector<uint64_t> entries_ = {0};
};

}  // namespace gxp
