// Proves from recorded steps that an algorithm is right, for one shape:
//   Matching    every message is received, with the elements that were sent, in order.
//   Progress    no rank waits forever, whatever the timing.
//   Content     nothing is read that holds nothing; each element of the result is, or holds each
//               rank's contribution to, the right element exactly once; a barrier's ranks have all
//               heard from all.
//   Bits        an element's fold tree is the same on every rank that holds it; for a
//               layout-invariant algorithm it is the one of reduction_tree.h.
//   Cost        elements sent are those of the formula, and so are the rounds of
//               one_port_replay.h; for hosts of unequal size the formula is an upper bound.
// Elements are followed as stretches that the steps do not cut, so the cost is that of the steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/collective/algorithm/schedule.h"

namespace gxp {

struct Proof {
  std::vector<std::string> problems;  // "rank 3 step 5 (...): ..."; empty if proved
  // Names the fold tree, if all elements of the result have the same one; 0 otherwise. Equal trees
  // have equal names, also across algorithms and counts.
  uint64_t association = 0;
};

// `schedule` has world_size rows, at most 64.
Proof verify(const Algorithm& algorithm, const Schedule& schedule, const CallShape& shape);

}  // namespace gxp
