// Direct exchange: every rank sends each other rank the data that it needs, in one hop. In step
// i = 1 .. p - 1 (p = world_size) it sends to rank + i and receives from rank - i, so that no rank
// is swamped; all is sent before anything is awaited. The least latency where many peers can be
// written to at once, such as shared memory.
//   all-reduce      2(p - 1) rounds, 2(p - 1)/p * bytes sent: all send each its own chunk, and it
//                   sends the sum to all.
//   reduce-scatter, all-gather, all-to-all   p - 1 rounds, (p - 1)/p * bytes.
//   broadcast, scatter, gather, reduce       p - 1 rounds, all at the root.
// one-shot all-reduce: all ranks send their whole buffer to all and fold all for themselves: p - 1
// rounds, (p - 1) * bytes, for the smallest buffers.
// Association: that of reduction_tree.h; the versions are folded when all have arrived.
// Scratch: the p - 1 versions of a chunk (one-shot and reduce: of the buffer). all-to-all: the p -
// 1 leaving chunks, so that what arrives can take their places.
#pragma once

#include <cstdint>

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

void direct_all_reduce(Primitives& comm, const CallShape& shape);
void direct_reduce_scatter(Primitives& comm, const CallShape& shape);
void direct_all_gather(Primitives& comm, const CallShape& shape);
void direct_broadcast(Primitives& comm, const CallShape& shape);
void direct_reduce(Primitives& comm, const CallShape& shape);
void direct_gather(Primitives& comm, const CallShape& shape);
void direct_scatter(Primitives& comm, const CallShape& shape);
void direct_all_to_all(Primitives& comm, const CallShape& shape);
void one_shot_all_reduce(Primitives& comm, const CallShape& shape);

// Exact for any count.
int direct_rounds(const CallShape& shape);
int direct_all_reduce_rounds(const CallShape& shape);
uint64_t direct_all_reduce_sent(int rank, const CallShape& shape);
uint64_t direct_own_to_all_sent(int rank, const CallShape& shape);  // all-gather
uint64_t one_shot_sent(int rank, const CallShape& shape);
size_t direct_chunks_scratch(int rank, const CallShape& shape);  // of chunk `rank`
size_t direct_reduce_scratch(int rank, const CallShape& shape);
size_t one_shot_scratch(int rank, const CallShape& shape);

}  // namespace gxp
