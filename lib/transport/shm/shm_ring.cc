#include "lib/transport/shm/shm_ring.h"

#include <algorithm>
#include <cstring>

#include "lib/base/error.h"

namespace gxp {

size_t ShmRing::write_some(ConstMemory head, ConstMemory body) {
  if (position_ - seen_consumed_ == kSlots) {
    seen_consumed_ = consumed().load();
    if (position_ - seen_consumed_ == kSlots) return 0;
  }
  Slot& free = slot(position_);
  const size_t count = std::min(head.bytes + body.bytes, slot_bytes_);
  const size_t of_head = std::min(count, head.bytes);
  std::byte* payload = free.payload(count);
  std::memcpy(payload, head.data, of_head);
  std::memcpy(payload + of_head, body.data, count - of_head);
  free.bytes = uint32_t(count);
  free.turn.store(turn_of(position_));
  ++position_;
  return count;
}

ConstMemory ShmRing::front() {
  Slot& full = slot(position_);
  if (full.turn.load() != turn_of(position_)) return {};
  const size_t in_slot = full.bytes;
  if (in_slot > slot_bytes_ || in_slot <= offset_) {
    fail(ErrorKind::kPeer, "read from shared memory: a slot of {} bytes claims {}", slot_bytes_,
         in_slot);
  }
  return {full.payload(in_slot) + offset_, in_slot - offset_};
}

bool ShmRing::release(size_t count) {
  offset_ += count;
  if (offset_ < slot(position_).bytes) return false;
  offset_ = 0;
  ++position_;
  if (position_ - seen_consumed_ < kSlots / 2) return false;
  seen_consumed_ = position_;
  consumed().store(position_);
  return true;
}

}  // namespace gxp
