#include "lib/transport/peer_messages.h"

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {

namespace {

// Beyond this the ranks certainly run different programs.
constexpr size_t kMaxParkedBytes = size_t{4} << 30;

}  // namespace

bool PeerMessages::add_receive(PendingMessage& receive) {
  ++unfinished_receives_;
  const auto parked = std::find_if(parked_.begin(), parked_.end(), [&](const Parked& early) {
    return early.message.tag == receive.tag && early.receive == nullptr;
  });
  if (parked == parked_.end()) {
    posted_.push_back(&receive);
    return true;
  }
  receive.arrived_bytes = parked->payload.size();
  if (receive.arrived_bytes != receive.bytes) {
    finish_receive(receive);  // wait() finds out
  } else if (parked->message.done) {
    unpark(parked, receive);
  } else {
    parked->receive = &receive;
  }
  return false;
}

PendingMessage& PeerMessages::begin(Tag tag, size_t bytes) {
  const auto found =
      std::find_if(posted_.begin(), posted_.end(),
                   [&](const PendingMessage* receive) { return receive->tag == tag; });
  if (found == posted_.end()) return park(tag, bytes);
  PendingMessage& receive = **found;
  posted_.erase(found);
  receive.arrived_bytes = bytes;
  check_size(receive);
  return receive;
}

PendingMessage& PeerMessages::park(Tag tag, size_t bytes) {
  if (bytes > kMaxParkedBytes - traffic_.parked_bytes) {
    fail(
        ErrorKind::kPeer,
        "receive from rank {}: it sent more than {} that this rank does not ask for; the ranks run "
        "different operations",
        peer_, format_bytes(kMaxParkedBytes));
  }
  Parked& parked = parked_.emplace_back();
  parked.payload.resize(bytes);
  parked.message = make_receive(peer_, tag, memory_of(parked.payload));
  traffic_.parked_bytes += bytes;
  if (traffic_.unexpected) traffic_.unexpected(peer_, tag);
  return parked.message;
}

void PeerMessages::unpark(ParkedMessage parked, PendingMessage& receive) {
  deliver(receive, memory_of(std::as_const(parked->payload)));
  finish_receive(receive);
  traffic_.parked_bytes -= parked->payload.size();
  parked_.erase(parked);
}

void PeerMessages::finish(PendingMessage& message) {
  if (message.sends) {
    message.done = true;
    --unfinished_sends_;
    traffic_.counters.add(message);
    return;
  }
  const auto parked = std::find_if(parked_.begin(), parked_.end(),
                                   [&](const Parked& early) { return &early.message == &message; });
  if (parked == parked_.end()) return finish_receive(message);
  message.done = true;
  if (parked->receive != nullptr) unpark(parked, *parked->receive);
}

void PeerMessages::finish_receive(PendingMessage& receive) {
  receive.done = true;
  --unfinished_receives_;
  traffic_.counters.add(receive);
}

}  // namespace gxp
