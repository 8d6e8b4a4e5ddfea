#include "lib/transport/verbs/verbs_link.h"

#include <arpa/inet.h>

#include <cstring>
#include <utility>

namespace gxp {

void VerbsLink::post_send(PendingMessage& send) {
  sender_.post(send);
  sender_.progress(messages());
}

bool VerbsLink::progress() {
  bool moved = std::exchange(moved_, false);
  moved |= receiver_.progress(messages());
  moved |= sender_.progress(messages());
  return channel_.return_credits() || moved;
}

void VerbsLink::complete(const WorkId& id, const ibv_wc& completion) {
  moved_ = true;
  const bool is_peers = id.kind != WorkId::Kind::kFlush;
  if (completion.status != IBV_WC_SUCCESS && is_peers) return channel_.on_failure(id, completion);
  if (stopped_ && id.kind != WorkId::Kind::kSend) return;
  switch (id.kind) {
    case WorkId::Kind::kSend:
      return channel_.on_sent(id.lane, id.slot);
    case WorkId::Kind::kWrite:
      channel_.on_written(id.lane);
      return sender_.on_written(id.lane, messages());
    case WorkId::Kind::kFlush:
      return receiver_.on_flushed(id, completion, messages());
    case WorkId::Kind::kReceive:
      if (completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
        return take_message(id.slot, completion.byte_len);
      channel_.recycle(id.lane, id.slot);
      return receiver_.on_data(ntohl(completion.imm_data), messages());
  }
}

void VerbsLink::stop() noexcept {
  stopped_ = true;
  channel_.give_up(sender_.holds_memory() || receiver_.holds_memory());
  sender_.release_memory();
  receiver_.release_memory();
}

void VerbsLink::take_message(uint16_t slot, size_t bytes) {
  const VerbsHeader header = channel_.take(slot, bytes);
  switch (header.kind) {
    case VerbsKind::kPayload:
    case VerbsKind::kAnnounce:
      return receiver_.on_message(slot);
    case VerbsKind::kGrant: {
      VerbsGrant grant;
      const ConstMemory body = channel_.body_of(slot);
      if (body.bytes != sizeof grant) channel_.fail_corrupt("half a grant");
      std::memcpy(&grant, body.data, sizeof grant);
      channel_.recycle(0, slot);
      return sender_.on_grant(header, grant);
    }
    case VerbsKind::kCredits:
    case VerbsKind::kEnd:
      return channel_.recycle(0, slot);
  }
  channel_.fail_corrupt("a message of an unknown kind");
}

}  // namespace gxp
