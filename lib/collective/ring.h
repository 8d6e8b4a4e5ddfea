// Ring collectives: Patarasuk & Yuan, J. Parallel Distrib. Comput. 69(2), 2009.
// The buffer is cut into p = world_size chunks. In each step every rank sends one chunk to the
// next rank and receives one from the previous rank, so all links are busy all the time.
//   all-reduce                  2(p - 1) rounds, 2(p - 1)/p * bytes sent by each rank: the least.
//   reduce-scatter, all-gather  p - 1 rounds, (p - 1)/p * bytes.
// Association of chunk c: ((x[c+1] + x[c+2]) + ... ) + x[c], so it depends on the layout.
#pragma once

#include <cstdint>

#include "lib/collective/primitives.h"

namespace gxp {

void ring_all_reduce(Primitives& comm, size_t count, int root);
void ring_reduce_scatter(Primitives& comm, size_t count, int root);
void ring_all_gather(Primitives& comm, size_t count, int root);

// Exact for any count.
int ring_all_reduce_rounds(int world_size);
int ring_half_rounds(int world_size);
uint64_t ring_all_reduce_sent(int rank, int world_size, size_t count, int root);
uint64_t ring_reduce_scatter_sent(int rank, int world_size, size_t count, int root);
uint64_t ring_all_gather_sent(int rank, int world_size, size_t count, int root);

}  // namespace gxp
