// Any ranks: messages over one TCP connection per pair, authenticated.
//
// Small messages leave at once, header and payload in one system call; large ones go from the
// user's span to the user's span. Keep-alive probes notice a host that has vanished; a rank that is
// merely busy is left in peace however long it does not read. IPv4 and IPv6.
#pragma once

#include <memory>

#include "lib/base/error.h"
#include "lib/transport/context.h"
#include "lib/transport/transport.h"

namespace gxp {

Support supports_tcp(const TransportContext& context, const Hosts& hosts);
// All ranks call it. Errors: kPeer, kIo.
std::unique_ptr<Transport> make_tcp_transport(const TransportContext& context, const Hosts& hosts);

}  // namespace gxp
