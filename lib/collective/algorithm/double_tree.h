// Two binary trees at once: Sanders, Speck & Traeff, Parallel Computing 35(12), 2009. Each carries
// one half of the buffer. No rank has children in both (topo/plan/double_binary_tree.h), so all
// send and receive at full speed.
//   broadcast   `bytes` sent by an inner rank, in 2(m - 1) + floor(log2 p) + ceil(log2 p) rounds if
//               each half is passed on in m segments: the least bytes and logarithmic latency.
//   reduce      the same upwards; one round more or less.
//   all-reduce  reduce to rank 0, then broadcast. Overlapping the two would not help: either keeps
//               each rank sending and receiving.
// Association: that of the trees, which differ between the halves; so it depends on the layout.
// A rank acts on the segment that is due at its depth: in step s of a broadcast, two rounds long,
// on segment s - depth. Waiting in one tree therefore does not delay the other.
#pragma once

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

void double_tree_all_reduce(Primitives& comm, const CallShape& shape);
void double_tree_broadcast(Primitives& comm, const CallShape& shape);
void double_tree_reduce(Primitives& comm, const CallShape& shape);

int double_tree_all_reduce_rounds(const CallShape& shape);
int double_tree_broadcast_rounds(const CallShape& shape);
int double_tree_reduce_rounds(const CallShape& shape);

}  // namespace gxp
