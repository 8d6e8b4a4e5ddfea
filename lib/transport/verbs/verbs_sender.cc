#include "lib/transport/verbs/verbs_sender.h"

#include <algorithm>
#include <iterator>

namespace gxp {

VerbsSender::VerbsSender(VerbsChannel& channel, VerbsRegistrations& registrations)
    : channel_(channel),
      registrations_(registrations),
      parts_(channel.routes().size()),
      writing_(channel.routes().size()) {}

bool VerbsSender::progress(PeerMessages& messages) {
  bool moved = false;
  while (!to_send_.empty() && send_first(messages)) moved = true;
  for (size_t lane = 0; lane < parts_.size(); ++lane) {
    while (!parts_[lane].empty() && channel_.can_write(lane)) {
      write_some(lane);
      moved = true;
    }
  }
  return moved;
}

// Messages of one tag arrive as sent, so none overtakes another: a long one's announcement stands
// for it.
bool VerbsSender::send_first(PeerMessages& messages) {
  PendingMessage& send = *to_send_.front();
  // The host cannot put GPU memory into a slot.
  const bool is_long = send.bytes > channel_.longest_payload() || send.space != MemorySpace::kHost;
  const VerbsHeader header{.kind = is_long ? VerbsKind::kAnnounce : VerbsKind::kPayload,
                           .number = is_long ? next_number_ : 0,
                           .tag = send.tag,
                           .bytes = send.bytes};
  const ConstMemory body{send.source, is_long ? 0 : send.bytes, send.space};
  if (!channel_.send(header, body)) return false;
  to_send_.pop_front();
  if (is_long) {
    announce(send);
  } else {
    send.moved = send.bytes;
    messages.finish(send);
  }
  return true;
}

void VerbsSender::announce(PendingMessage& send) {
  announced_.push_back({.send = &send, .number = next_number_++});
  const auto early = std::ranges::find(early_, send.tag, &EarlyGrant::tag);
  if (early == early_.end()) return;
  const EarlyGrant given = *early;
  early_.erase(early);
  start(std::prev(announced_.end()), given.message_bytes, given.grant);
}

void VerbsSender::on_grant(const VerbsHeader& header, const VerbsGrant& grant) {
  const bool answers = header.answers != 0;
  const auto found = std::ranges::find_if(announced_, [&](const Outgoing& outgoing) {
    if (answers) return outgoing.number == header.number;
    return outgoing.granted == 0 && outgoing.send->tag == header.tag;
  });
  if (found != announced_.end()) return start(found, header.bytes, grant);
  if (answers || early_.size() == kGrants) channel_.fail_corrupt("an unrequested grant");
  early_.push_back({header.tag, header.bytes, grant});
}

// Grants follow each other through a message, so no byte is written twice. A receive of another
// size is granted in vain: its rank fails when it sees the announcement.
void VerbsSender::start(Sending sending, uint64_t message_bytes, const VerbsGrant& grant) {
  PendingMessage& send = *sending->send;
  const uint64_t at = sending->granted;
  const bool in_vain = message_bytes != send.bytes;
  if (!in_vain && (grant.bytes == 0 || grant.offset != at || grant.bytes > send.bytes - at))
    channel_.fail_corrupt("a grant beyond its message");
  sending->granted = in_vain ? send.bytes : at + grant.bytes;
  if (in_vain) return;
  if (!sending->memory.valid())
    sending->memory = registrations_.use({send.source, send.bytes, send.space});
  const LaneCut cut = cut_over_lanes(grant.bytes, parts_.size());
  for (size_t i = 0; i < cut.count; ++i) {
    const size_t end = std::min<size_t>(grant.bytes, (i + 1) * cut.share);
    parts_[next_lane_++ % parts_.size()].push_back({sending, grant, i * cut.share, end});
  }
}

void VerbsSender::write_some(size_t lane) {
  Part& part = parts_[lane].front();
  const VerbsRoute& route = channel_.routes()[lane];
  const size_t bytes = std::min(part.end - part.at, kMostPerWrite);
  const bool is_last = part.at + bytes == part.end;
  // Only read, though the queue's entries have no place for const.
  auto* const source =
      const_cast<std::byte*>(part.sending->send->source + part.grant.offset + part.at);
  route.lane->write({source, bytes, part.sending->memory.local_key(route.device)},
                    part.grant.address + part.at, part.grant.keys[route.peers_rail],
                    is_last ? &part.grant.number : nullptr);
  writing_[lane].emplace_back(part.sending, bytes);
  part.at += bytes;
  if (is_last) parts_[lane].pop_front();
}

void VerbsSender::on_written(size_t lane, PeerMessages& messages) {
  const auto [sending, bytes] = writing_[lane].front();
  writing_[lane].pop_front();
  PendingMessage& send = *sending->send;
  send.moved += bytes;
  if (send.moved < send.bytes) return;
  announced_.erase(sending);
  messages.finish(send);
}

bool VerbsSender::holds_memory() const {
  return std::ranges::any_of(announced_, [](const Outgoing& it) { return it.memory.valid(); });
}

void VerbsSender::release_memory() noexcept {
  for (Outgoing& outgoing : announced_) outgoing.memory.reset();
}

}  // namespace gxp
