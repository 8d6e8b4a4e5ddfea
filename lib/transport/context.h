// What a rank must know to make a transport.
#pragma once

#include <string>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/net/secret.h"
#include "lib/net/store.h"

namespace gxp {

// The same for all processes that can share memory and local sockets: one boot of one kernel and
// one network namespace. Containers of one host differ unless they share the namespace.
std::string host_identity();

// The hosts of all ranks, by rank.
using Hosts = std::vector<std::string>;

// Everything pointed to outlives the transport.
struct TransportContext {
  int rank = 0;
  int world_size = 1;
  Store* store = nullptr;
  const Secret* secret = nullptr;
  Deadline deadline;  // of the whole set-up
  // Where rank 0's store is. With several hosts: by this name they reach the ranks beside rank 0,
  // and on the interface that leads there they are reached themselves.
  std::string master_addr = "127.0.0.1";
  std::string host = host_identity();
};

}  // namespace gxp
