// Recursive halving (reduce-scatter) and doubling (all-gather): Thakur, Rabenseifner & Gropp, Int.
// J. High Perform. Comput. Appl. 19(1), 2005. For any world size p: let c be the largest power of
// two <= p and e = p - c. The first e pairs of neighbours (0, 1), (2, 3), ... act as one core rank
// each, for which the even one works; so there are c core ranks, and core rank i stands for the
// chunks of its members, which lie side by side.
//   fold in     each odd member sends its whole buffer to its even neighbour.
//   halving     core ranks at distance c/2, c/4, ... 1 exchange and fold halves of what they hold.
//   doubling    the same exchanges backwards, storing.
//   hand out    even members send the result to their odd neighbours: one chunk of a
//               reduce-scatter, everything otherwise.
// Cost, with K bytes (k = log2 c):
//   all-reduce      2k rounds, 2K(c - 1)/c sent by each rank; if e > 0, 2 rounds more, and even
//                   members send and receive K more. Ring sends less then; here the association
//                   matters.
//   reduce-scatter  k rounds, K(c - 1)/c; if e > 0, 2 rounds more: odd members send K, even ones a
//                   chunk more.
//   all-gather      k rounds, K(c - 1)/c; if e > 0, 2 rounds more: odd members send a chunk, even
//                   ones K more.
// Association: with y[i] = x[2i] + x[2i+1] for i < e and y[i] = x[i+e] otherwise, every element is
// sum(y) where sum(y) = y[0] if c = 1, else sum of the c/2 values (y[i] + y[i + c/2]), recursively.
// No position, count or owner occurs in it: layout-invariant, the same for all-reduce and
// reduce-scatter.
#pragma once

#include <cstdint>

#include "lib/collective/primitives.h"

namespace gxp {

void halving_doubling_all_reduce(Primitives& comm, size_t count, int root);
void halving_doubling_reduce_scatter(Primitives& comm, size_t count, int root);
void halving_doubling_all_gather(Primitives& comm, size_t count, int root);

// Exact for any count.
int halving_doubling_all_reduce_rounds(int world_size);
int halving_doubling_half_rounds(int world_size);
uint64_t halving_doubling_all_reduce_sent(int rank, int world_size, size_t count, int root);
uint64_t halving_doubling_reduce_scatter_sent(int rank, int world_size, size_t count, int root);
uint64_t halving_doubling_all_gather_sent(int rank, int world_size, size_t count, int root);

}  // namespace gxp
