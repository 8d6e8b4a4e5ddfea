// Moves bytes between this rank and its peers. For every implementation:
//   Order      messages with equal (peer, tag) arrive as sent; other messages may be received in
//              any order, but one that is received later than it was sent is held in memory.
//   Size       the receiver's span has the sender's size; if not, wait() throws kPeer.
//   Ownership  the caller keeps `data` alive, and a sent span unchanged, until its wait() returns
//              or any wait() throws.
//   Device     a device span is ready: the caller has waited for the event of its last writer.
//   Progress   happens inside wait(); a wait for one ticket moves all of this rank's tickets, so
//              two ranks that both start a send and a receive, and then wait for them in any order,
//              do not block each other, whatever the size. A send may last until its receive is
//              posted.
//   Threads    one thread at a time, except abort() and counters().
//   Errors     kPeer: a peer is lost or late; kDevice: a local NIC or GPU failed.
//              After a throw only abort() and the destructor may be called.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/deadline.h"
#include "lib/device/memory.h"

namespace gxp {

using Tag = uint64_t;

// Names one started operation of one transport. Tickets may be waited for in any order, once each.
struct Ticket {
  uint64_t id = 0;
};

// Combines arriving bytes with the target instead of storing them: the waiting thread calls apply()
// with consecutive pieces of the message, each of whole elements, directly from the memory into
// which the transport has received them.
struct Combiner {
  void (*apply)(const void* context, std::byte* target, const std::byte* arrived, size_t bytes);
  const void* context = nullptr;  // lives until the ticket has been waited for
  size_t element_bytes = 1;
};

// Called for a message that arrived while its receiver waited for other messages of that peer; may
// throw. Ranks that run different operations therefore detect this before the deadline.
using UnexpectedMessage = std::function<void(int peer, Tag tag)>;

class SharedArena;

// Payload bytes and messages that this rank sent and received, headers and handshakes not counted.
// A message counts when its last byte has been handed over; an empty one counts nothing.
struct WireCounters {
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "shm"
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world_size() const = 0;
  // Whether messages between this rank and all others may use such memory. What is combined is
  // host memory.
  [[nodiscard]] virtual bool supports_memory(MemorySpace space) const {
    return space == MemorySpace::kHost;
  }
  // Starts to send all of `data`; does not wait for the peer. Zero bytes complete at once, on both
  // sides, and nothing travels.
  [[nodiscard]] virtual Ticket send(int peer, Tag tag, ConstMemory data) = 0;
  // Starts to fill all of `data`.
  [[nodiscard]] virtual Ticket recv(int peer, Tag tag, Memory data) = 0;
  // Starts to combine all of `target` with a message of its size.
  [[nodiscard]] virtual Ticket recv_and_combine(int peer, Tag tag, Memory target,
                                                const Combiner& combiner) = 0;
  // Returns when the operation is done: a sent span is free again, a received span is readable.
  virtual void wait(Ticket ticket, Deadline deadline) = 0;
  // Wakes every waiter with kPeer and makes later waits throw; the peers see this rank's
  // connections close. Callable from any thread, any number of times; the first reason is kept.
  virtual void abort(std::string_view reason) noexcept = 0;
  // At most one at a time; empty: none. Not called for what was parked before.
  virtual void on_unexpected(UnexpectedMessage handler) = 0;
  // The host of each rank, numbered from 0 in order of appearance; empty: all on one.
  [[nodiscard]] virtual std::span<const int> hosts() const { return {}; }
  // Memory that this rank shares with the ranks of its host, if any (shared_arena.h).
  [[nodiscard]] virtual SharedArena* shared_arena() { return nullptr; }
  // From now until forget() this memory stays where it is, so hardware that must know the
  // memory it reaches may go on knowing it between messages. No operation uses what is forgotten.
  virtual void keep(ConstMemory /*memory*/) {}
  virtual void forget(ConstMemory /*memory*/) noexcept {}
  // Threads: any.
  [[nodiscard]] virtual WireCounters counters() const = 0;
  // The part of bytes_sent that went to `peer`. Threads: any.
  [[nodiscard]] virtual uint64_t bytes_sent_to(int peer) const = 0;
};

}  // namespace gxp
