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
  // Whether this rank and `peer` are to be connected; both must say the same. Empty: all are. A
  // rank that joins none needs no listener.
  std::function<bool(int peer)> joins{};
  // The remedy if a peer cannot be reached at its reported address.
  std::string remedy{};
};

// All ranks call it. Publishes the address, connects to the lower ranks and accepts the higher
// ones. Returns the connections by rank, this rank's own and those not wanted empty; nothing but
// the handshake has travelled on them.
// Whoever cannot prove that it is a rank that is still to come is dropped and costs nothing but its
// socket (lib/net/socket/strangers.h), and each has 5 s.
// Errors: kPeer, naming the ranks that did not come and why the last stranger was dropped; kIo, no
// descriptor is left for them.
std::vector<Fd> connect_mesh(const TransportContext& context, MeshParts parts);

// The same with the keys that both ends of each connection have for it.
struct MeshConnection {
  Fd socket;
  SealKeys keys;
};
std::vector<MeshConnection> connect_mesh_with_keys(const TransportContext& context,
                                                   MeshParts parts);

}  // namespace gxp
