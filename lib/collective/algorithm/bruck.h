// Bruck, Ho, Kipnis, Upfal & Weathersby, IEEE Trans. Parallel Distrib. Syst. 8(11), 1997:
// all-gather and all-to-all in ceil(log2 p) rounds for any world size p, for small chunks. Block i
// of a rank is the chunk of rank + i, modulo p, in a copy of the buffer that starts there.
//   all-gather  with d = 1, 2, 4, ... a rank holds blocks 0 .. d - 1, sends as many of them as are
//               still missing to rank - d and receives the next from rank + d.
//               (p - 1)/p * bytes sent. Scratch: one buffer.
//   all-to-all  with d = 1, 2, 4, ... all blocks whose number contains d move on to rank + d, so
//               that block i travels i ranks in all. About bytes/2 sent in each round.
//               Scratch: two buffers.
#pragma once

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

void bruck_all_gather(Primitives& comm, const CallShape& shape);
void bruck_all_to_all(Primitives& comm, const CallShape& shape);

size_t bruck_all_gather_scratch(int rank, const CallShape& shape);
size_t bruck_all_to_all_scratch(int rank, const CallShape& shape);

}  // namespace gxp
