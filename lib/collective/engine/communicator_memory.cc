#include "lib/collective/engine/communicator_memory.h"

#include <utility>

namespace gxp {

CommunicatorMemory::CommunicatorMemory(SharedSpace& space, size_t bytes)
    : space_(&space), memory_(space.allocate(bytes)) {}
CommunicatorMemory::CommunicatorMemory(Buffer buffer)
    : memory_(buffer.memory()), buffer_(std::move(buffer)) {}
CommunicatorMemory::CommunicatorMemory(CommunicatorMemory&& other) noexcept
    : space_(std::exchange(other.space_, nullptr)),
      memory_(std::exchange(other.memory_, {})),
      buffer_(std::move(other.buffer_)) {}
CommunicatorMemory& CommunicatorMemory::operator=(CommunicatorMemory&& other) noexcept {
  std::swap(space_, other.space_);
  std::swap(memory_, other.memory_);
  std::swap(buffer_, other.buffer_);
  return *this;
}
CommunicatorMemory::~CommunicatorMemory() {
  if (space_ != nullptr) space_->release(memory_);
}

}  // namespace gxp
