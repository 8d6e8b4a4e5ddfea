// Vector halving with distance doubling, and back: Rabenseifner, "Optimization of Collective
// Reduction Operations", ICCS 2004; Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput.
// Appl. 19(1), 2005; for any world size over the c core ranks and e pairs of reduction_tree.h, as
// is the association.
//   fold in     each odd member sends its whole buffer to its even neighbour.
//   halving     core ranks at distance 1, 2, ... c/2 exchange and fold halves of what they hold.
//               Of a reduce-scatter a half is every other chunk, each a message of its own.
//   doubling    the same exchanges backwards, storing. (An all-gather: at distance 1, 2, ... c/2,
//               so that what is held lies side by side.)
//   hand out    even members send the result to their odd neighbours: one chunk of a
//               reduce-scatter, everything otherwise.
// Cost, with K bytes (k = log2 c):
//   all-reduce      2k rounds, 2K(c - 1)/c sent by each rank; if e > 0, 2 rounds more, and even
//                   members send and receive K more. Ring sends less then; here the association
//                   matters.
//   reduce-scatter  c - 1 rounds, K(c - 1)/c; if e > 0, 2 rounds more: odd members send K, even
//                   ones a chunk more.
//   all-gather      k rounds, K(c - 1)/c; if e > 0, 2 rounds more: odd members send a chunk, even
//                   ones K more.
//
// Recursive doubling (the same paper of 2005): core ranks at distance 1, 2, ... c/2 exchange and
// fold the whole buffer, so that nothing has to be gathered: half the rounds, for more bytes.
//   all-reduce      k rounds, k * K sent by each rank; if e > 0, 2 rounds more: odd members send K
//                   in all, even ones K more. Scratch: one buffer.
#pragma once

#include <cstdint>

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

void halving_doubling_all_reduce(Primitives& comm, const CallShape& shape);
void halving_doubling_reduce_scatter(Primitives& comm, const CallShape& shape);
void halving_doubling_all_gather(Primitives& comm, const CallShape& shape);
void recursive_doubling_all_reduce(Primitives& comm, const CallShape& shape);

// Exact for any count.
int halving_doubling_all_reduce_rounds(const CallShape& shape);
int halving_doubling_reduce_scatter_rounds(const CallShape& shape);
int recursive_doubling_rounds(const CallShape& shape);  // and of halving-doubling's all-gather
uint64_t halving_doubling_reduce_scatter_sent(int rank, const CallShape& shape);
size_t recursive_doubling_scratch(int rank, const CallShape& shape);

}  // namespace gxp
