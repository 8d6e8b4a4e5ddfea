// Messages over a stream of bytes, one after the other: each a header (tag, bytes) and its payload.
// While this rank awaits no message nothing is read: the stream fills up, and the peer's sends
// wait. So unasked-for data is bounded by what the stream itself holds.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/transport/link.h"
#include "lib/transport/stream/byte_stream.h"

namespace gxp {

class StreamLink final : public PeerLink {
 public:
  explicit StreamLink(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}

  bool supports_memory(MemorySpace space) const override { return space == MemorySpace::kHost; }
  void post_send(PendingMessage& send) override;
  bool progress() override;
  std::string_view closed() const override { return stream_->closed(); }
  void shut_down(std::string_view /*reason*/) noexcept override { stream_->shut_down(); }
  void wake_peer() override { stream_->wake_peer(); }

 private:
  struct Header {
    uint64_t magic = 0;
    Tag tag = 0;
    uint64_t bytes = 0;
  };

  bool write_messages();  // these return whether anything moved
  bool read_header();
  bool read_payload();

  std::unique_ptr<ByteStream> stream_;
  std::deque<PendingMessage*> to_send_;  // the first one may be under way
  size_t header_sent_ = 0;               // bytes of its header
  Header header_;                        // of the message that is arriving
  size_t header_read_ = 0;               // bytes
  PendingMessage* arriving_ = nullptr;   // where its payload goes, once the header has been read
};

}  // namespace gxp
