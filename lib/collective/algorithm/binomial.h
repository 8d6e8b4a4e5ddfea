// Collectives along a binomial tree: Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput.
// Appl. 19(1), 2005. Ranks are numbered from the root; number n's parent is n without its lowest
// set bit, and n's subtree are the numbers from n on that differ only below that bit.
//   broadcast  ceil(log2 p) rounds; the root sends ceil(log2 p) * bytes, a leaf nothing.
//   gather     towards the root, smallest subtree first; a rank sends the chunks of its subtree.
//   scatter    the same backwards.
//              (p - 1)/p * bytes at the root. A subtree whose ranks wrap around behind the last
//              one takes two messages, so up to ceil(log2 p) rounds come on top of as many.
//   reduce     along the core ranks of reduction_tree.h and in that association, whatever the root:
//              ceil(log2 p) rounds; every rank but the root sends its buffer once.
#pragma once

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

void binomial_broadcast(Primitives& comm, const CallShape& shape);
void binomial_reduce(Primitives& comm, const CallShape& shape);
void binomial_gather(Primitives& comm, const CallShape& shape);
void binomial_scatter(Primitives& comm, const CallShape& shape);

int binomial_chunks_rounds(const CallShape& shape);

}  // namespace gxp
