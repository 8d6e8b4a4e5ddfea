// Recursive doubling: Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput. Appl. 19(1),
// 2005. As halving_doubling.h, but core ranks at distance 1, 2, ... c/2 exchange and fold the
// whole buffer, so that nothing has to be gathered: half the rounds, for more bytes. (Its
// all-gather is that of halving-doubling.)
//   all-reduce  k rounds, k * bytes sent by each rank (k = log2 c); if pairs exist, 2 rounds more:
//               odd members send `bytes` in all, even ones `bytes` more.
// Association: that of reduction_tree.h. Scratch: one buffer.
#pragma once

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

void recursive_doubling_all_reduce(Primitives& comm, const CallShape& shape);

// Exact for any count.
int recursive_doubling_rounds(const CallShape& shape);
size_t recursive_doubling_scratch(int rank, const CallShape& shape);

}  // namespace gxp
