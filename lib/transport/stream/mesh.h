// One authenticated connection between every two ranks, for transports to build on.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/net/socket/seal.h"
#include "lib/transport/context.h"

namespace gxp {

struct MeshParts {
  std::string name;     // "tcp": purpose of the authentication and key in the store
  Fd listener;          // non-blocking
  std::string address;  // of the listener, as `connect` takes it
  std::function<Fd(const std::string& address, std::string_view peer, Deadline deadline)> connect;
  // Whether to connect this rank with `peer`; must be the same on both. Empty: all are. A rank that
  // joins none needs no listener.
  std::function<bool(int peer)> joins{};
  // The remedy if a peer cannot be reached at its reported address.
  std::string remedy{};
};

// All ranks call it. Publishes the address, connects to the lower ranks and accepts the higher
// ones. Returns the connections by rank, this rank's own and those not wanted empty; nothing but
// the handshake has travelled on them.
// A client that does not prove within 5 s that it is one of the missing ranks is dropped; it costs
// only its socket (lib/net/socket/strangers.h).
// Errors: kPeer, naming the ranks that did not come and why the last stranger was dropped; kIo, no
// descriptor is left for them.
std::vector<Fd> connect_mesh(const TransportContext& context, MeshParts parts);

// The same connections with the keys that both of their ends hold.
struct MeshConnection {
  Fd socket;
  SealKeys keys;
};
std::vector<MeshConnection> connect_mesh_with_keys(const TransportContext& context,
                                                   MeshParts parts);

}  // namespace gxp
