#include "lib/transport/faulty.h"

#include <thread>
#include <utility>

#include "lib/base/error.h"

namespace gxp {

Ticket FaultyTransport::send(int peer, Tag tag, ConstMemory data) {
  const bool planned = data.bytes > 0 && sends_++ == plan_.message;
  if (!planned) return ForwardingTransport::send(peer, tag, data);
  switch (plan_.fault) {
    case Fault::kCut:
      abort("the connections were cut by the fault plan");
      fail(ErrorKind::kPeer, "send to rank {}: the connections were cut by the fault plan", peer);
    case Fault::kDelay:
      std::this_thread::sleep_for(plan_.delay);
      break;
    case Fault::kTruncate:
      return ForwardingTransport::send(peer, tag, data.slice(0, data.bytes / 2));
    case Fault::kCorrupt:
      bytes.assign(data.data, data.data + data.bytes);
      bytes[data.bytes / 2] ^= std::byte{1};
      return ForwardingTransport::send(peer, tag, memory_of(std::as_const(bytes)));
  }
  return ForwardingTransport::send(peer, tag, data);
}

}  // namespace gxp
