// The samples of a list of token files, numbered from 0 in the order of the list.
//
// A sample is sequence + 1 consecutive tokens of one file: the first `sequence` are the inputs, the
// last `sequence` the targets. Streams (text, llm.c shards) are cut into windows at every
// `sequence`-th token, so that neighbours share one token and each token but the first is a target
// once; what is left at the end of a file is not used. A row of a .i32 file is a sample as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/data/token_file.h"

namespace gxp {

// Threads: const functions from any.
class Dataset {
 public:
  // `paths` are files, directories (all their files, by name) or patterns with *, ? and [] (all
  // matches, by name); the order of the list is kept. `setting` names the list in messages:
  // "data.train". Errors, besides TokenFile's: kConfig an empty list, a pattern or directory
  // without a file, a file too short for one sample; kCorrupt a .i32 file that is not whole
  // rows.
  Dataset(const std::vector<std::string>& paths, int sequence, int vocab_size,
          const std::string& setting = "data.train");

  [[nodiscard]] uint64_t sample_count() const { return first_samples_.back(); }
  [[nodiscard]] int sequence() const { return sequence_; }
  // Fills `tokens` and `targets`, `sequence` elements each. `sample` < sample_count(). kCorrupt on
  // a token id that the vocabulary does not have, or a file that has been cut; kIo.
  void read(uint64_t sample, int32_t* tokens, int32_t* targets) const;

 private:
  [[nodiscard]] uint64_t samples_of(const TokenFile& file) const;

  int sequence_;
  int vocab_size_;
  std::vector<TokenFile> files_;
  // The number of the first sample of each file, then the count of all.
  std::vector<uint64_t> first_samples_ = {0};
};

}  // namespace gxp
