#include "lib/transport/operation.h"

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {

Operation make_send(int peer, Tag tag, ConstMemory data) {
  GXP_ASSERT(data.space == MemorySpace::kHost);
  return {.sends = true,
          .peer = peer,
          .tag = tag,
          .bytes = data.bytes,
          .source = data.data,
          .done = data.bytes == 0};
}

Operation make_receive(int peer, Tag tag, Memory data) {
  GXP_ASSERT(data.space == MemorySpace::kHost);
  return {
      .peer = peer, .tag = tag, .bytes = data.bytes, .target = data.data, .done = data.bytes == 0};
}

void fail_late(const Operation& operation, Deadline deadline) {
  fail(ErrorKind::kPeer,
       "{} rank {}: {} with tag {} not complete after {:.3g} s ({} moved); is it running, and in "
       "the "
       "same operation?",
       operation.sends ? "send to" : "receive from", operation.peer, format_bytes(operation.bytes),
       operation.tag, deadline.seconds(), format_bytes(operation.moved));
}

void check_size(const Operation& receive) {
  if (receive.arrived_bytes == receive.bytes) return;
  fail(ErrorKind::kPeer,
       "receive from rank {}: message with tag {} has {} bytes, its receiver expects {}; the ranks "
       "run different operations",
       receive.peer, receive.tag, receive.arrived_bytes, receive.bytes);
}

// A ticket is the slot's generation and its index.
Ticket OperationTable::add(const Operation& operation) {
  uint32_t index = uint32_t(slots_.size());
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Slot& slot = slots_[index];
  slot.operation = operation;
  ++slot.generation;
  return {uint64_t{slot.generation} << 32 | index};
}

Operation& OperationTable::operator[](Ticket ticket) {
  const auto index = uint32_t(ticket.id);
  GXP_ASSERT(index < slots_.size() && slots_[index].generation == uint32_t(ticket.id >> 32));
  return slots_[index].operation;
}

void OperationTable::remove(Ticket ticket) {
  const auto index = uint32_t(ticket.id);
  (*this)[ticket].done = true;
  ++slots_[index].generation;
  free_.push_back(index);
}

void AtomicCounters::add(const Operation& operation) {
  (operation.sends ? bytes_sent_ : bytes_received_)
      .fetch_add(operation.bytes, std::memory_order_relaxed);
  (operation.sends ? messages_sent_ : messages_received_).fetch_add(1, std::memory_order_relaxed);
}

WireCounters AtomicCounters::read() const {
  return {bytes_sent_.load(std::memory_order_relaxed),
          bytes_received_.load(std::memory_order_relaxed),
          messages_sent_.load(std::memory_order_relaxed),
          messages_received_.load(std::memory_order_relaxed)};
}

}  // namespace gxp
