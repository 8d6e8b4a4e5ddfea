// Broadcast along a binomial tree: Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput.
// Appl. 19(1), 2005. Ranks are numbered from the root. A rank receives from the one without its
// lowest set bit and sends to those that have one lower bit more, the largest subtree first.
//   ceil(log2 p) rounds; the root sends ceil(log2 p) * bytes, a leaf nothing.
#pragma once

#include <cstdint>

#include "lib/collective/primitives.h"

namespace gxp {

void binomial_broadcast(Primitives& comm, size_t count, int root);

int binomial_rounds(int world_size);
uint64_t binomial_broadcast_sent(int rank, int world_size, size_t count, int root);

}  // namespace gxp
