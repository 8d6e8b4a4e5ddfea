// Proves from recorded steps that an algorithm is right, for one world size and count:
//   Matching    every message is received, with the elements that were sent, in order.
//   Progress    no rank waits for ever, whatever the timing: messages match by order between two
//               ranks, so one replay stands for all.
//   Content     each element of the result holds each rank's contribution exactly once; a barrier's
//               ranks have all heard from all.
//   Bits        an element's fold tree is the same on every rank that holds it; for a
//               layout-invariant algorithm also the same for all elements.
//   Cost        elements sent and rounds are those of the algorithm's formulas.
// Elements are followed as ranges that the steps do not cut, so the cost is that of the steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/collective/recorder.h"

namespace gxp {

struct Proof {
  std::vector<std::string> problems;  // "rank 3 step 5 (...): ..."; empty if proved
  // Names the fold tree, if all elements of the result have the same one; 0 otherwise. Equal trees
  // have equal names, also across algorithms and counts.
  uint64_t association = 0;
};

// `schedule` has world_size rows, at most 64.
Proof verify(const Algorithm& algorithm, const Schedule& schedule, size_t count, int root = 0);

}  // namespace gxp
