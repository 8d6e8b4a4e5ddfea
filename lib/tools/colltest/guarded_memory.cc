#include "lib/tools/colltest/guarded_memory.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace gxp {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kGuardBytes = 512;  // each side; more than a vector or a cache line
constexpr std::byte kGuard{0xd9};
constexpr size_t kWord = sizeof(uint64_t);

using Guard = std::array<std::byte, kGuardBytes>;

Guard intact_guard() {
  Guard guard{};
  guard.fill(kGuard);
  return guard;
}

size_t count_damaged(const Guard& guard) {
  const Guard intact = intact_guard();
  size_t count = 0;
  for (size_t at = 0; at < kGuardBytes; at += kWord)
    count += std::memcmp(guard.data() + at, intact.data() + at, kWord) != 0;
  return count;
}

}  // namespace

// One page in front keeps the page boundary, and holds the front guard. One more: small buffers of
// a device need not begin at a page.
size_t GuardedMemory::room_for(size_t bytes) { return 2 * kPage + bytes + kGuardBytes; }

GuardedMemory::GuardedMemory(Device& device, Buffer own) : device_(device), own_(std::move(own)) {
  begin_at_page(own_.memory());
}

GuardedMemory::GuardedMemory(Device& device, CommunicatorMemory shared)
    : device_(device), shared_(std::move(shared)) {
  begin_at_page(shared_.memory());
}

void GuardedMemory::begin_at_page(Memory all) {
  const size_t past = reinterpret_cast<uintptr_t>(all.data) % kPage;
  whole_ = all.slice(past == 0 ? 0 : kPage - past, all.bytes - kPage);
  // A GPU's memory was written when it was allocated.
  if (whole_.space == MemorySpace::kHost) std::memset(whole_.data, 0, whole_.bytes);
}

Memory GuardedMemory::place(size_t offset, size_t bytes) {
  at_ = kPage + offset;
  bytes_ = bytes;
  const Guard guard = intact_guard();
  device_.copy(whole_.slice(at_ - kGuardBytes, kGuardBytes), memory_of(guard));
  device_.copy(whole_.slice(at_ + bytes, kGuardBytes), memory_of(guard));
  return whole_.slice(at_, bytes);
}

size_t GuardedMemory::damaged() const {
  if (at_ == 0) return 0;
  Guard before{};
  Guard after{};
  device_.copy(memory_of(before), whole_.slice(at_ - kGuardBytes, kGuardBytes));
  device_.copy(memory_of(after), whole_.slice(at_ + bytes_, kGuardBytes));
  return count_damaged(before) + count_damaged(after);
}

}  // namespace gxp
