#include "lib/transport/pending_message.h"

#include <algorithm>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {

PendingMessage make_send(int peer, Tag tag, ConstMemory data) {
  return {.sends = true,
          .peer = peer,
          .tag = tag,
          .bytes = data.bytes,
          .space = data.space,
          .source = data.data,
          .done = data.bytes == 0};
}

PendingMessage make_receive(int peer, Tag tag, Memory data) {
  return {.peer = peer,
          .tag = tag,
          .bytes = data.bytes,
          .space = data.space,
          .target = data.data,
          .done = data.bytes == 0};
}

PendingMessage make_combine(int peer, Tag tag, Memory target, const Combiner& combiner) {
  GXP_ASSERT(combiner.element_bytes > 0 && combiner.element_bytes <= kMaxElementBytes);
  GXP_ASSERT(target.bytes % combiner.element_bytes == 0);
  PendingMessage receive = make_receive(peer, tag, target);
  receive.combiner = combiner;
  return receive;
}

namespace {

// Adds to the element that is split; returns how many bytes it took.
size_t complete_element(PendingMessage& receive, ConstMemory arrived) {
  const Combiner& combiner = receive.combiner;
  const size_t element = combiner.element_bytes;
  const size_t before = receive.moved % element;
  if (before == 0) return 0;
  const size_t count = std::min(element - before, arrived.bytes);
  std::memcpy(receive.split.data() + before, arrived.data, count);
  receive.moved += count;
  if (before + count == element)
    combiner.apply(combiner.context, receive.target + receive.moved - element, receive.split.data(),
                   element);
  return count;
}

bool suits(const std::byte* address, size_t element_bytes) {
  return reinterpret_cast<uintptr_t>(address) % element_bytes == 0;
}

}  // namespace

void deliver(PendingMessage& receive, ConstMemory arrived) {
  const Combiner& combiner = receive.combiner;
  const size_t element = combiner.element_bytes;
  if (receive.device != nullptr) {
    receive.device->copy({receive.target + receive.moved, arrived.bytes, receive.space}, arrived);
    receive.moved += arrived.bytes;
    return;
  }
  if (combiner.apply == nullptr) {
    std::memcpy(receive.target + receive.moved, arrived.data, arrived.bytes);
    receive.moved += arrived.bytes;
    return;
  }
  size_t at = complete_element(receive, arrived);
  const size_t end = at + (arrived.bytes - at) / element * element;
  alignas(64) std::array<std::byte, 4096> aligned;
  while (at < end) {
    const std::byte* from = arrived.data + at;
    size_t count = end - at;
    if (!suits(from, element)) {
      count = std::min(count, aligned.size() / element * element);
      std::memcpy(aligned.data(), from, count);
      from = aligned.data();
    }
    combiner.apply(combiner.context, receive.target + receive.moved, from, count);
    receive.moved += count;
    at += count;
  }
  std::memcpy(receive.split.data(), arrived.data + end, arrived.bytes - end);
  receive.moved += arrived.bytes - end;
}

void fail_late(const PendingMessage& operation, Deadline deadline) {
  fail(ErrorKind::kPeer,
       "{} rank {}: {} with tag {} not complete after {:.3g} s ({} moved); is it running, and in "
       "the same operation?",
       operation.sends ? "send to" : "receive from", operation.peer, format_bytes(operation.bytes),
       operation.tag, deadline.seconds(), format_bytes(operation.moved));
}

void check_size(const PendingMessage& receive) {
  if (receive.arrived_bytes == receive.bytes) return;
  fail(ErrorKind::kPeer,
       "receive from rank {}: message with tag {} has {} bytes, its receiver expects {}; the ranks "
       "run different operations",
       receive.peer, receive.tag, receive.arrived_bytes, receive.bytes);
}

// A ticket is the slot's generation and its index.
Ticket OperationTable::add(const PendingMessage& operation) {
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

PendingMessage& OperationTable::operator[](Ticket ticket) {
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

void AtomicCounters::add(const PendingMessage& operation) {
  (operation.sends ? sent_to_[size_t(operation.peer)] : bytes_received_)
      .fetch_add(operation.bytes, std::memory_order_relaxed);
  (operation.sends ? messages_sent_ : messages_received_).fetch_add(1, std::memory_order_relaxed);
}

WireCounters AtomicCounters::read() const {
  uint64_t sent = 0;
  for (const auto& bytes : sent_to_) sent += bytes.load(std::memory_order_relaxed);
  return {sent, bytes_received_.load(std::memory_order_relaxed),
          messages_sent_.load(std::memory_order_relaxed),
          messages_received_.load(std::memory_order_relaxed)};
}

uint64_t AtomicCounters::bytes_sent_to(int peer) const {
  return sent_to_[size_t(peer)].load(std::memory_order_relaxed);
}

}  // namespace gxp
