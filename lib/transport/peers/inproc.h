// Ranks as threads of one process: bytes go straight from the sender's span to the receiver's.
// For tests and simulations; nothing leaves before its receiver waits for this peer, so a program
// that relies on buffering hangs here.
#pragma once

#include <memory>

#include "lib/transport/transport.h"

namespace gxp {

// What the transports of `world_size` threads share. It must outlive them.
// When a transport is aborted or destroyed, the peers that wait for it get kPeer with its reason.
// Threads: any. Cost: one mutex for the world; a message is copied while it is held.
class InprocWorld {
 public:
  explicit InprocWorld(int world_size);
  ~InprocWorld();
  // Once per rank.
  [[nodiscard]] std::unique_ptr<Transport> make_transport(int rank);
  struct State;  // where messages are offered; known to inproc.cc only

 private:
  std::unique_ptr<State> state_;
};

}  // namespace gxp
