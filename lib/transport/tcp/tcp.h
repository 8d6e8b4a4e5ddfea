// Any ranks: messages over TCP connections between each two, whose ends have proved themselves and
// whose bytes are protected as tcp.protect says (sealed_stream.h). IPv4 and IPv6.
//
// Small messages leave at once, header and payload in one system call, and arrive in one; large
// ones go from the user's span to the user's span, or in pieces that stay in the cache to the
// combiner. How many connections a pair has and how large their buffers are is tried out at the
// start (tcp_tuning.h).
// A rank whose process ends is noticed at once, a host that vanishes after TcpOptions::silence; a
// rank that is merely busy, or stopped, is left in peace however long it does not read.
#pragma once

#include <memory>

#include "lib/transport/context.h"
#include "lib/transport/link.h"
#include "lib/transport/row.h"

namespace gxp {

Reach tcp_reaches(const TransportContext& context, int a, int b);
// All ranks call it. Rank 0 logs how the bytes are protected. Errors: kPeer, kIo; kConfig, no such
// network interface, or the ranks have different protection.
std::unique_ptr<LinkGroup> connect_tcp_links(const TransportContext& context,
                                             const JoinedPairs& joins);

}  // namespace gxp
