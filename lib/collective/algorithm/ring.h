// Ring collectives: Patarasuk & Yuan, J. Parallel Distrib. Comput. 69(2), 2009.
// The buffer is cut into p = world_size chunks. In each step every rank sends one chunk to the
// next rank and receives one from the previous rank, so all links are busy all the time.
//   all-reduce                  2(p - 1) rounds, 2(p - 1)/p * bytes sent by each rank: the least.
//   reduce-scatter, all-gather  p - 1 rounds, (p - 1)/p * bytes.
// With several channels each chunk is cut into as many parts, each on a ring of its own. They take
// the orders of RankOrders in turn, then the same backwards, so that both directions of a link
// are in use. All are in flight at once: the bytes stay the same, the rounds are those of one
// channel times channels.
// Association of chunk c, in the order of a channel's ring: ((x[c+1] + x[c+2]) + ... ) + x[c], so
// it depends on the layout.
#pragma once

#include <cstdint>

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

void ring_all_reduce(Primitives& comm, const CallShape& shape);
void ring_reduce_scatter(Primitives& comm, const CallShape& shape);
void ring_all_gather(Primitives& comm, const CallShape& shape);

// Exact for any count.
int ring_all_reduce_rounds(const CallShape& shape);
int ring_half_rounds(const CallShape& shape);
uint64_t ring_all_reduce_sent(int rank, const CallShape& shape);
uint64_t ring_all_gather_sent(int rank, const CallShape& shape);

}  // namespace gxp
