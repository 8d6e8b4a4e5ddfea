// Ranks of several hosts: shared memory between those of one host, TCP between hosts.
//
// A rank that sleeps waits for its TCP sockets and for the sockets that it shares with the ranks of
// its host: over these a peer that has written into shared memory rings its bell.
#pragma once

#include <memory>

#include "lib/base/error.h"
#include "lib/transport/context.h"
#include "lib/transport/transport.h"

namespace gxp {

Support supports_shm_and_tcp(const TransportContext& context, const Hosts& hosts);
// All ranks call it. Errors: kPeer, kIo; kConfig, no such network interface.
std::unique_ptr<Transport> make_shm_and_tcp_transport(const TransportContext& context,
                                                      const Hosts& hosts);

}  // namespace gxp
