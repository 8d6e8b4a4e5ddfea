// Collectives that only move elements, as messages between every two ranks at the same time: for
// engines whose library has no such call, or none for so many elements.
#pragma once

#include <vector>

#include "lib/collective/algorithm/call.h"
#include "lib/collective/engine/engine.h"

namespace gxp {

struct PairwiseExchange {
  std::vector<PeerMessage> messages;  // of this rank; between two ranks at most one each way
  ConstMemory own_from;               // what this rank gives itself
  Memory own_to;                      // of the same size; may be the same memory
};

// For all-gather, gather, scatter and all-to-all; in an all-to-all input and output are apart.
PairwiseExchange pairwise_exchange(const Call& call, int rank, int world_size, ConstMemory input,
                                   Memory output);

}  // namespace gxp
