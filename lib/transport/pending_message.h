// The state of a started send or receive, for every transport.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/device/device.h"
#include "lib/transport/transport.h"

namespace gxp {

constexpr size_t kMaxElementBytes = 16;

struct PendingMessage {
  bool sends = false;
  int peer = 0;
  Tag tag = 0;
  size_t bytes = 0;
  MemorySpace space = MemorySpace::kHost;  // of source and target
  const std::byte* source = nullptr;       // of a send
  std::byte* target = nullptr;             // of a receive
  Device* device = nullptr;                // copies into the target; null: host memory
  size_t moved = 0;                        // bytes so far
  size_t arrived_bytes = 0;                // of a receive: the message's size, once it is known
  bool done = false;
  Combiner combiner{};  // of a receive; no apply: the bytes are stored
  // The front of an element whose other bytes have not arrived; moved % element_bytes of them.
  alignas(kMaxElementBytes) std::array<std::byte, kMaxElementBytes> split{};
};

PendingMessage make_send(int peer, Tag tag, ConstMemory data);
PendingMessage make_receive(int peer, Tag tag, Memory data);
PendingMessage make_combine(int peer, Tag tag, Memory target, const Combiner& combiner);

// Stores or combines the next bytes of a message at their place. Any cut is allowed: what the
// combiner gets are whole elements at addresses that suit them.
void deliver(PendingMessage& receive, ConstMemory arrived);

// kPeer: "receive from rank 2: 1 MiB with tag 7 not complete after 30 s; ...".
[[noreturn]] void fail_late(const PendingMessage& operation, Deadline deadline);
// Throws kPeer if arrived_bytes is not bytes: "receive from rank 2: message with tag 7 has 16
// bytes, its receiver expects 8; ...".
void check_size(const PendingMessage& receive);

// The operations of one transport by ticket. References stay valid until remove(). A ticket that is
// used twice is a GXP_ASSERT.
class OperationTable {
 public:
  Ticket add(const PendingMessage& operation);
  PendingMessage& operator[](Ticket ticket);
  void remove(Ticket ticket);

 private:
  struct Slot {
    PendingMessage operation;
    uint32_t generation = 0;  // odd while in use
  };
  std::deque<Slot> slots_;
  std::vector<uint32_t> free_;
};

// WireCounters that one thread advances and any thread reads.
class AtomicCounters {
 public:
  explicit AtomicCounters(int world_size) : sent_to_(size_t(world_size)) {}
  // Counts a message that was completely sent or received.
  void add(const PendingMessage& operation);
  [[nodiscard]] WireCounters read() const;
  [[nodiscard]] uint64_t bytes_sent_to(int peer) const;

 private:
  std::vector<std::atomic<uint64_t>> sent_to_;  // bytes, by peer
  std::atomic<uint64_t> bytes_received_{0};
  std::atomic<uint64_t> messages_sent_{0};
  std::atomic<uint64_t> messages_received_{0};
};

}  // namespace gxp
