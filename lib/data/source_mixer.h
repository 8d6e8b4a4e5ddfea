// Which source, and which of its samples, is at each position of an endless sequence that mixes
// several sources in given proportions.
//
// Positions count samples over all ranks, as in sample_order.h, so that the mixture is the same at
// every world size, and a run that has read p samples goes on at position p. Among any first p
// positions a source with the share w has p * w samples, with an error below 1 for two sources, and
// below the depth of the tree, ceil(log2(sources)), for more: so whatever a step reads, it has the
// mixture. A source's own samples follow each other by its own SampleOrder, epoch after epoch: each
// epoch of a source has each of its samples once.
//
// Sources are the leaves of a binary tree. At a node whose left side has the share a/s, the left side
// gets floor((p + 1) * a / s) - floor(p * a / s) of the node's positions p: a Sturmian word, or
// Beatty sequence, which is as even as whole numbers can be (Lothaire, Algebraic Combinatorics on
// Words, 2002, chapter 2). The values are part of the contract: a resumed run must find the same order
// under a later version of gxp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/config/data_config.h"
#include "lib/data/sample_order.h"

namespace gxp {

struct MixedSource {
  double weight = 1;          // > 0; only proportions count
  uint64_t sample_count = 1;  // > 0
};

// Pure. Threads: const functions from any. Cost of each: O(log(sources)).
class SourceMixer {
 public:
  // At least one source. Weights whose decimals are few ("0.7", "0.3") are taken as exactly those
  // fractions, others to within 2^-31 of their sum. A source is shuffled by a seed of its own, made
  // of `seed` and its number.
  SourceMixer(const std::vector<MixedSource>& sources, RowOrder order, uint64_t seed);

  struct Place {
    size_t source = 0;
    uint64_t sample = 0;  // of the source
    uint64_t epoch = 0;   // of the source
    friend bool operator==(const Place&, const Place&) = default;
  };
  [[nodiscard]] Place at(uint64_t position) const;
  // How many samples of the source are among the first `position`; divided by its sample_count: its
  // epochs.
  [[nodiscard]] uint64_t samples_before(uint64_t position, size_t source) const;

 private:
  // Sources [begin, end) have the weight share_sums_[end] - share_sums_[begin].
  struct Range {
    size_t begin, end;
  };
  [[nodiscard]] uint64_t left_of(const Range& node, uint64_t position) const;

  std::vector<uint64_t> share_sums_ = {0};  // all together below 2^32
  std::vector<uint64_t> sample_counts_;
  std::vector<SampleOrder> orders_;
};

}  // namespace gxp
