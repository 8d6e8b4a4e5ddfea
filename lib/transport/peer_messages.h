// The messages between this rank and one peer: which receive a message is for, and the messages
// that came before their receives. PeerTransport posts operations here; the peer's link moves them.
//
//   - A message whose receive is posted is received directly into the user's memory.
//   - A message that arrives before its receive is posted is buffered in memory until then. Without
//   that, receiving in another order than sent would block. - A link takes no message while
//   awaits() is false, so unasked-for data stay with the peer,
//     whose sends wait.
#pragma once

#include <cstddef>
#include <list>
#include <vector>

#include "lib/transport/pending_message.h"
#include "lib/transport/transport.h"

namespace gxp {

// What the messages of all peers have in common.
struct Traffic {
  explicit Traffic(int world_size) : counters(world_size) {}
  AtomicCounters counters;
  size_t parked_bytes = 0;
  UnexpectedMessage unexpected;
};

// What a rank waits for from one peer.
struct Interest {
  int peer = 0;
  bool to_receive = false;
  bool to_send = false;
};

class PeerMessages {
 public:
  // `traffic` outlives this.
  PeerMessages(int peer, Traffic& traffic) : peer_(peer), traffic_(traffic) {}

  // For the transport. Operations stay where they are until they are done.
  void add_send() { ++unfinished_sends_; }
  // Returns whether the message is still to come; otherwise it was parked, and is taken from there.
  bool add_receive(PendingMessage& receive);
  [[nodiscard]] bool has_operations() const { return unfinished_sends_ + unfinished_receives_ > 0; }
  [[nodiscard]] Interest interest() const {
    return {peer_, unfinished_receives_ > 0, unfinished_sends_ > 0};
  }

  // For the link.
  [[nodiscard]] int peer() const { return peer_; }
  [[nodiscard]] bool awaits() const { return unfinished_receives_ > 0; }
  // A message arrives: returns what its bytes are delivered to, the oldest receive with this tag or
  // a parking place. Errors: kPeer, the sizes differ, or too much is parked; what the handler of
  // unexpected messages throws.
  [[nodiscard]] PendingMessage& begin(Tag tag, size_t bytes);
  // The whole message is sent, or the memory returned by begin() is filled.
  void finish(PendingMessage& message);

 private:
  // A message that came before its receive.
  struct Parked {
    std::vector<std::byte> payload;
    PendingMessage message;             // its target is the payload
    PendingMessage* receive = nullptr;  // posted while the message still arrives
  };
  using ParkedMessage = std::list<Parked>::iterator;

  PendingMessage& park(Tag tag, size_t bytes);
  void unpark(ParkedMessage parked, PendingMessage& receive);
  void finish_receive(PendingMessage& receive);

  int peer_;
  Traffic& traffic_;
  size_t unfinished_sends_ = 0;
  size_t unfinished_receives_ = 0;
  std::vector<PendingMessage*> posted_;  // receives whose message has not begun, in order
  std::list<Parked> parked_;             // in order of arrival
};

}  // namespace gxp
