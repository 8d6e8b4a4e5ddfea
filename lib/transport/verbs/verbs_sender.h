// The messages that this rank sends over one link: short ones in slots, long ones from their own
// memory to the addresses that the peer has granted.
//   Errors   kDevice; kPeer: a grant that cannot be.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <utility>
#include <vector>

#include "lib/transport/peer_messages.h"
#include "lib/transport/verbs/verbs_channel.h"

namespace gxp {

class VerbsSender {
 public:
  // Both outlive this.
  VerbsSender(VerbsChannel& channel, VerbsRegistrations& registrations);

  void post(PendingMessage& send) { to_send_.push_back(&send); }
  // Sends and writes as much as there is room for; returns whether anything moved.
  bool progress(PeerMessages& messages);
  // The peer has granted a place.
  void on_grant(const VerbsHeader& header, const VerbsGrant& grant);
  // The oldest write of a lane is done.
  void on_written(size_t lane, PeerMessages& messages);
  // Whether a device may read what users send.
  [[nodiscard]] bool holds_memory() const;
  // No device does any more; nothing but the destructor may follow.
  void release_memory() noexcept;

 private:
  // A long message that was announced.
  struct Outgoing {
    PendingMessage* send = nullptr;
    uint32_t number = 0;
    uint64_t granted = 0;  // bytes, from the front
    VerbsRegistrations::Use memory{};
  };
  using Sending = std::list<Outgoing>::iterator;
  struct EarlyGrant {
    Tag tag = 0;
    uint64_t message_bytes = 0;
    VerbsGrant grant;
  };
  // Bytes of a message that one lane writes.
  struct Part {
    Sending sending;
    VerbsGrant grant;
    size_t at = 0;  // within the grant
    size_t end = 0;
  };

  bool send_first(PeerMessages& messages);
  void announce(PendingMessage& send);
  void start(Sending sending, uint64_t message_bytes, const VerbsGrant& grant);
  void write_some(size_t lane);

  VerbsChannel& channel_;
  VerbsRegistrations& registrations_;
  std::deque<PendingMessage*> to_send_;  // in order
  std::list<Outgoing> announced_;        // in order
  std::deque<EarlyGrant> early_;         // for messages that this rank has not begun to send
  std::vector<std::deque<Part>> parts_;  // to be written, by lane
  std::vector<std::deque<std::pair<Sending, size_t>>> writing_;  // bytes of each request, by lane
  uint32_t next_number_ = kFirstNumber;
  size_t next_lane_ = 0;
};

}  // namespace gxp
