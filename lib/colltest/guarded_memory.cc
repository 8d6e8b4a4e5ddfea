#include "lib/colltest/guarded_memory.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace gxp {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kGuardBytes = 512;  // each side; more than a vector or a cache line
constexpr std::byte kGuard{0xd9};
constexpr size_t kWord = sizeof(uint64_t);

// One page in front keeps the page boundary, and holds the front guard.
size_t room_for(size_t bytes) { return kPage + bytes + kGuardBytes; }

size_t count_damaged(const std::byte* guard) {
  std::array<std::byte, kWord> intact{};
  intact.fill(kGuard);
  size_t count = 0;
  for (size_t at = 0; at < kGuardBytes; at += kWord)
    count += std::memcmp(guard + at, intact.data(), kWord) != 0;
  return count;
}

}  // namespace

GuardedMemory::GuardedMemory(Communicator& communicator, size_t bytes)
    : shared_(communicator.allocate(room_for(bytes))), whole_(shared_.memory()) {
  touch(bytes);
}

GuardedMemory::GuardedMemory(Device& device, size_t bytes)
    // Small buffers of a device need not begin at a page.
    : own_(device.allocate(room_for(bytes) + kPage, MemoryKind::kWorkspace)) {
  const size_t past = reinterpret_cast<uintptr_t>(own_.memory().data) % kPage;
  whole_ = own_.memory().slice(past == 0 ? 0 : kPage - past, room_for(bytes));
  touch(bytes);
}

void GuardedMemory::touch(size_t bytes) { std::memset(whole_.data, 0, room_for(bytes)); }

Memory GuardedMemory::place(size_t offset, size_t bytes) {
  placed_ = whole_.slice(kPage + offset, bytes);
  std::memset(placed_.data - kGuardBytes, int(kGuard), kGuardBytes);
  std::memset(placed_.data + bytes, int(kGuard), kGuardBytes);
  return placed_;
}

size_t GuardedMemory::damaged() const {
  if (placed_.data == nullptr) return 0;
  return count_damaged(placed_.data - kGuardBytes) + count_damaged(placed_.data + placed_.bytes);
}

}  // namespace gxp
