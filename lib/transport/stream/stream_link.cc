#include "lib/transport/stream/stream_link.h"

#include <algorithm>

#include "lib/base/error.h"

namespace gxp {

namespace {

constexpr uint64_t kMagic = 0x32707867;  // "gxp2": a stream out of step is seen at the next header

}  // namespace

// Earlier messages leave first, so only the first one is tried at once.
void StreamLink::post_send(PendingMessage& send) {
  to_send_.push_back(&send);
  if (to_send_.size() == 1) write_messages();
}

bool StreamLink::progress() {
  const bool sent = !to_send_.empty() && write_messages();
  bool received = false;
  while (messages().awaits() && (arriving_ == nullptr ? read_header() : read_payload()))
    received = true;
  return sent || received;
}

bool StreamLink::write_messages() {
  bool moved = false;
  while (!to_send_.empty()) {
    PendingMessage& send = *to_send_.front();
    const Header header{kMagic, send.tag, send.bytes};
    const auto* head = reinterpret_cast<const std::byte*>(&header);
    const size_t head_bytes = sizeof header - header_sent_;
    const size_t taken = stream_->write_some({head + header_sent_, head_bytes},
                                             {send.source + send.moved, send.bytes - send.moved});
    if (taken == 0) break;
    moved = true;
    const size_t of_head = std::min(taken, head_bytes);
    header_sent_ += of_head;
    send.moved += taken - of_head;
    if (send.moved < send.bytes) continue;
    to_send_.pop_front();
    header_sent_ = 0;
    messages().finish(send);
  }
  return moved;
}

bool StreamLink::read_header() {
  auto* head = reinterpret_cast<std::byte*>(&header_);
  const size_t count = stream_->read_some({head + header_read_, sizeof(Header) - header_read_});
  header_read_ += count;
  if (header_read_ < sizeof(Header)) return count > 0;
  if (header_.magic != kMagic || header_.bytes == 0)
    fail(ErrorKind::kPeer, "receive from rank {}: its stream is corrupt", messages().peer());
  arriving_ = &messages().begin(header_.tag, header_.bytes);
  header_read_ = 0;
  return true;
}

bool StreamLink::read_payload() {
  const size_t count = stream_->deliver_some(*arriving_);
  if (arriving_->moved == arriving_->bytes) messages().finish(*std::exchange(arriving_, nullptr));
  return count > 0;
}

}  // namespace gxp
