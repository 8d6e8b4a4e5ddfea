#include "lib/collective/engine/communicator_memory.h"

#include <utility>

namespace gxp {

CommunicatorMemory::CommunicatorMemory(SharedArena& arena, size_t bytes)
    : arena_(&arena), memory_(arena.allocate(bytes)) {}
CommunicatorMemory::CommunicatorMemory(Buffer buffer)
    : memory_(buffer.memory()), buffer_(std::move(buffer)) {}
CommunicatorMemory::CommunicatorMemory(CommunicatorMemory&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)),
      keeper_(std::exchange(other.keeper_, nullptr)),
      memory_(std::exchange(other.memory_, {})),
      buffer_(std::move(other.buffer_)) {}
CommunicatorMemory& CommunicatorMemory::operator=(CommunicatorMemory&& other) noexcept {
  std::swap(arena_, other.arena_);
  std::swap(keeper_, other.keeper_);
  std::swap(memory_, other.memory_);
  std::swap(buffer_, other.buffer_);
  return *this;
}
CommunicatorMemory::~CommunicatorMemory() {
  if (keeper_ != nullptr) keeper_->forget(memory_);
  if (arena_ != nullptr) arena_->release(memory_);
}

void CommunicatorMemory::keep_with(Transport& transport) {
  if (memory_.space != MemorySpace::kHost || memory_.bytes == 0) return;
  transport.keep(memory_);
  keeper_ = &transport;
}

}  // namespace gxp
