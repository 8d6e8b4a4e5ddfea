// The samples of a list of token files, numbered from 0 in the order of the list.
//
// A sample is sequence + 1 consecutive tokens of one file: the first `sequence` are the inputs, the
// last `sequence` the targets. Streams (text, llm.c shards) are cut into windows at every
// `sequence`-th token, so that neighbours share one token and each token but the first is a target
// once; what is left at the end of a file is not used. A row of a file of rows is a sample as it is.
// Where rows have labels, a target without one does not count: the loss is the mean over those that
// do. Elsewhere each target counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/config/data_config.h"
#include "lib/data/files/token_file.h"

namespace gxp {

// Shows whether two files hold the same data: ranks compare theirs, and a resumed run compares its
// own with the checkpoint's.
struct DataFingerprint {
  std::string path;
  std::string kind;  // of to_string(DataKind), then " with labels" if there are
  uint64_t bytes = 0;
  uint64_t tokens = 0;
  std::string hash;   // hash_hex() of blocks spread over the file
  uint64_t rows = 0;  // 0: a stream
};

// Threads: const functions from any.
// Overridden where rows hold several documents, one behind the other.
class Dataset {
 public:
  // `paths` are files, directories (all their files, by name) or patterns with *, ? and [] (all
  // matches, by name); the order of the list is kept. `setting` names the list in messages:
  // "data.train". Errors, besides TokenFile's: kConfig an empty list, a pattern or directory without
  // a file, a file too short for one sample or with rows of another length, text that
  // TextTokens::kAuto does not take; kCorrupt a .i32 file that is not whole rows.
  Dataset(const std::vector<std::string>& paths, int sequence, int vocab_size,
          const std::string& setting = "data.train", TextTokens tokenizer = TextTokens::kAuto);
  virtual ~Dataset() = default;

  [[nodiscard]] uint64_t sample_count() const { return first_samples_.back(); }
  [[nodiscard]] int sequence() const { return sequence_; }
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

  // Whether the files say where documents begin.
  [[nodiscard]] virtual bool has_documents() const { return false; }
  // Fills `begins`, of sequence() + 1 elements: for each position of the sample, that where its
  // document begins, 0 if that is before the sample. Only with has_documents(). Errors: as read().
  virtual void read_document_begins(uint64_t sample, std::span<int32_t> begins) const;

 private:
  struct Place {
    const TokenFile& file;
    uint64_t index;  // of the sample, among the file's
  };
  [[nodiscard]] Place find(uint64_t sample) const;
  [[nodiscard]] uint64_t samples_of(const TokenFile& file) const;

  int sequence_;
  int vocab_size_;
  std::vector<TokenFile> files_;
  // The number of the first sample of each file, then the count of all.
  std::vector<uint64_t> first_samples_ = {0};
};

}  // namespace gxp
