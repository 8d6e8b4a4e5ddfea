// Bytes to and from one peer, in order: what shm and tcp put below a link (stream_link.h).
#pragma once

#include <cstddef>
#include <string_view>

#include "lib/device/memory.h"
#include "lib/transport/pending_message.h"

namespace gxp {

// Never waits.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Takes as many bytes as fit now from the front of `head`, then of `body`; returns how many.
  virtual size_t write_some(ConstMemory head, ConstMemory body) = 0;
  // Fills the front of `target` with the available bytes; returns their number.
  virtual size_t read_some(Memory target) = 0;
  // The same for what `receive` still lacks, stored or combined straight from where it is.
  virtual size_t deliver_some(PendingMessage& receive) = 0;
  // "closed its connection": the reason why no more bytes will be written or read, once a later
  // call of write_some or read_some has moved none; "" while the peer is connected.
  [[nodiscard]] virtual std::string_view closed() const = 0;
  // Wakes the peer if it sleeps.
  virtual void wake_peer() {}
  // Lets the peer see the end. Any thread, also during the other calls.
  virtual void shut_down() noexcept = 0;
};

}  // namespace gxp
