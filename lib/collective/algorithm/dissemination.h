// Dissemination barrier: Hensgen, Finkel & Manber, Int. J. Parallel Program. 17(1), 1988.
// In round k every rank sends a token to rank + 2^k and waits for one from rank - 2^k; after
// ceil(log2 p) rounds each has heard, directly or not, from all.
#pragma once

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

void dissemination_barrier(Primitives& comm, const CallShape& shape);

}  // namespace gxp
