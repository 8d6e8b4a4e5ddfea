// Ranks of one host: messages through rings in shared memory.
//
// Each rank makes one segment: its bell, and a ring from every peer. Over a local socket to each
// peer, authenticated, the two exchange the descriptors; the socket stays open, and its end tells
// that the peer has ended, however it did. Payload is copied in and out, slot by slot.
// A waiting rank pauses, yields, then sleeps on its bell; it looks at the sockets every 20 ms.
// Memory: 0.5 MiB per ordered pair of ranks; less beyond 16 ranks, 8 MiB per rank at most.
#pragma once

#include <memory>

#include "lib/base/error.h"
#include "lib/transport/context.h"
#include "lib/transport/transport.h"

namespace gxp {

Support supports_shm(const TransportContext& context, const Hosts& hosts);
// All ranks call it. Errors: kPeer, kIo.
std::unique_ptr<Transport> make_shm_transport(const TransportContext& context, const Hosts& hosts);

}  // namespace gxp
