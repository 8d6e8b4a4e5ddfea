// Two levels: within each host, where ranks are many and near, and between hosts, so that as little
// as possible crosses the slow links. Hosts may be of any size, and ranks of a host anywhere.
// With h hosts of n ranks each, and K bytes:
//   all-reduce      ring reduce-scatter within the host, halving-doubling all-reduce of chunk i
//                   between the ranks of index i of all hosts, ring all-gather within the host:
//                   2(n - 1) + 2 log2 h rounds (h a power of two), 2K/n * (h - 1)/h between hosts.
//                   Hosts of unequal size: binomial reduce to each host's first rank, halving-
//                   doubling among these, binomial broadcast.
//   reduce-scatter  on each host one rank, the relay, collects what its host contributes to the
//                   chunk of rank r, and sends it to r. r's relay is the rank of r's index on its
//                   own host (modulo the size of the relay's): p - 1 rounds, K(p - 1)/p sent,
//                   of it K/n * (h - 1)/h between hosts.
//   all-gather      the same backwards: relays receive the chunks and hand them to their host.
//   broadcast       binomial between one rank of each host, then within the hosts.
//   reduce          the same backwards.
// One host makes a ring of the first, a direct exchange of the second and third.
// Rounds are exact for hosts of equal size, and an upper bound otherwise.
#pragma once

#include <cstdint>

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

void hierarchical_all_reduce(Primitives& comm, const CallShape& shape);
void hierarchical_reduce_scatter(Primitives& comm, const CallShape& shape);
void hierarchical_all_gather(Primitives& comm, const CallShape& shape);
void hierarchical_broadcast(Primitives& comm, const CallShape& shape);
void hierarchical_reduce(Primitives& comm, const CallShape& shape);

int hierarchical_all_reduce_rounds(const CallShape& shape);
int hierarchical_relay_rounds(const CallShape& shape);  // reduce-scatter, all-gather
int hierarchical_tree_rounds(const CallShape& shape);   // broadcast, reduce
uint64_t hierarchical_all_gather_sent(int rank, const CallShape& shape);

}  // namespace gxp
