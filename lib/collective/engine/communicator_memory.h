// Memory that a communicator gives out.
#pragma once

#include "lib/device/device.h"
#include "lib/device/memory.h"
#include "lib/transport/arena/shared_arena.h"
#include "lib/transport/transport.h"

namespace gxp {

// From Communicator::allocate(); given back at its end. The communicator outlives it.
class CommunicatorMemory {
 public:
  CommunicatorMemory() = default;
  // In an arena that peers map, or the device's.
  CommunicatorMemory(SharedArena& arena, size_t bytes);
  explicit CommunicatorMemory(Buffer buffer);
  CommunicatorMemory(CommunicatorMemory&& other) noexcept;
  CommunicatorMemory& operator=(CommunicatorMemory&& other) noexcept;
  ~CommunicatorMemory();
  // Host memory: lets the transport know for its whole life where it is (Transport::keep()).
  void keep_with(Transport& transport);
  [[nodiscard]] Memory memory() const { return memory_; }
  // Whether peers of this host work on it directly; false where there are none.
  [[nodiscard]] bool shared() const { return arena_ != nullptr; }

 private:
  SharedArena* arena_ = nullptr;
  Transport* keeper_ = nullptr;
  Memory memory_;
  Buffer buffer_;
};

}  // namespace gxp
