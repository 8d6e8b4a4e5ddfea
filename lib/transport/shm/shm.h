// Ranks of one host: messages through rings in shared memory.
//
// Each rank makes one segment: its bell, and a ring from every peer. Over a local socket to each
// peer, authenticated, the two exchange the descriptors; the socket stays open, and its end-of-file
// shows that the peer has ended in any way. Payload is copied in and out, slot by slot. A waiting
// rank pauses, yields, then sleeps on its bell and checks the sockets every 20 ms. With peers on
// other hosts it sleeps on the sockets, over which the peers then ring. Memory: 0.5 MiB per ordered
// pair of ranks; less beyond 16 ranks, 8 MiB per rank at most.
#pragma once

#include <memory>

#include "lib/transport/context.h"
#include "lib/transport/link.h"
#include "lib/transport/row.h"

namespace gxp {

// The ranks exchange whether they can share memory, and how much. All call it.
void survey_shm(TransportContext& context);
Reach shm_reaches(const TransportContext& context, int a, int b);
// Null where this host's ranks can share no memory. All ranks call it. Errors: kPeer, kIo.
std::unique_ptr<LinkGroup> connect_shm(const TransportContext& context, const JoinedPairs& joins);

}  // namespace gxp
