// Tensors whose elements are in flat partitions of several ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// The same one-dimensional tensor of each rank, by rank. Owners: the tensors that are read from it.
using RankParts = std::shared_ptr<const std::vector<NamedTensor>>;

// Element i lies at position p = start + i: with rank p / width, there at base + p % width.
struct RankPlacement {
  uint64_t start = 0;
  uint64_t width = 1;  // 0 only of a tensor without elements
  uint64_t base = 0;
};

// The tensor, read on demand from the ranks that have it; all its elements lie in `parts`.
// Cost: one read a rank that is touched.
NamedTensor gather_parts(TensorInfo info, RankParts parts, RankPlacement placement);

}  // namespace gxp
