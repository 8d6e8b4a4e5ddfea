// One direction between two ranks of a host: a ring of slots in memory that both have mapped.
//
//   slot      turn (u32) | bytes (u32) | 56 bytes | slot_bytes more
//             Up to 56 bytes travel in the slot's first cache line, so that flag and payload are
//             one cache miss; more go behind it. A slot is full in lap n (from 0) while turn = n
//             + 1.
//   consumed  slots that the consumer has given back, on a line of its own. The consumer publishes
//   it
//             once per half ring; the producer reads it only when the ring seems full.
//
// One thread writes and one reads, in one process or in two. Each has its own ShmRing object over
// the same memory, which must be zero at first. All flags are sequentially consistent, because the
// sleeping flag of ShmDoorbell is ordered against them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/device/memory.h"

namespace gxp {

class ShmRing {
 public:
  static constexpr uint32_t kSlots = 8;
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kInlineBytes = 56;

  // Memory that a ring with such slots takes; a multiple of kLineBytes. `slot_bytes` too is one.
  static constexpr size_t footprint(size_t slot_bytes) {
    return 2 * kLineBytes + kSlots * (kLineBytes + slot_bytes);
  }
  // `memory` is aligned to kLineBytes and outlives the ring.
  ShmRing(std::byte* memory, size_t slot_bytes) : memory_(memory), slot_bytes_(slot_bytes) {}

  // Producer: takes bytes from the front of `head`, then of `body`, into one slot; returns how
  // many; 0 if the ring is full. Either may be empty, but not null.
  size_t write_some(ConstMemory head, ConstMemory body);
  // Consumer: what is left of the oldest slot, empty if the ring is. Throws kPeer if the slot's
  // count is impossible.
  [[nodiscard]] ConstMemory front();
  // Consumer: gives back the first bytes of front(). Returns whether slots went to the producer.
  bool release(size_t count);

 private:
  struct Slot {
    std::atomic<uint32_t> turn;
    uint32_t bytes;
    std::byte inline_bytes[kInlineBytes];
    [[nodiscard]] std::byte* payload(size_t count) {
      return count <= kInlineBytes ? inline_bytes : reinterpret_cast<std::byte*>(this) + kLineBytes;
    }
  };
  static_assert(sizeof(Slot) == kLineBytes && std::atomic<uint32_t>::is_always_lock_free);

  [[nodiscard]] std::atomic<uint64_t>& consumed() const {
    return *reinterpret_cast<std::atomic<uint64_t>*>(memory_);
  }
  [[nodiscard]] Slot& slot(uint64_t position) const {
    const size_t stride = kLineBytes + slot_bytes_;
    return *reinterpret_cast<Slot*>(memory_ + 2 * kLineBytes + position % kSlots * stride);
  }
  static uint32_t turn_of(uint64_t position) { return uint32_t(position / kSlots + 1); }

  std::byte* memory_;
  size_t slot_bytes_;
  uint64_t position_ = 0;       // of the next slot to write or read
  uint64_t seen_consumed_ = 0;  // producer: when it last looked; consumer: when it last published
  size_t offset_ = 0;           // consumer: bytes of the slot already read
};

}  // namespace gxp
