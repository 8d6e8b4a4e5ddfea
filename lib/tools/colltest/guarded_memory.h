// A buffer under test with guard words on both sides, so that a write outside of what a call was
// given is found.
#pragma once

#include <cstddef>

#include "lib/collective/engine/communicator_memory.h"
#include "lib/device/device.h"

namespace gxp {

class GuardedMemory {
 public:
  // The size of memory in which `bytes` are to be placed.
  static size_t room_for(size_t bytes);
  // Memory of `device`, or of a communicator, which the device can copy; it outlives this. Every
  // page is touched.
  GuardedMemory(Device& device, Buffer own);
  GuardedMemory(Device& device, CommunicatorMemory shared);

  // `bytes` that begin `offset` bytes after a page boundary, surrounded by guards from now on.
  Memory place(size_t offset, size_t bytes);
  // The device's allocation that contains it; none: it is a communicator's.
  [[nodiscard]] Memory allocation() const { return own_.memory(); }
  // Guard words that no longer hold what place() wrote; 0 before it.
  [[nodiscard]] size_t damaged() const;

 private:
  void begin_at_page(Memory all);

  Device& device_;
  CommunicatorMemory shared_;
  Buffer own_;
  Memory whole_;   // begins at a page
  size_t at_ = 0;  // what is placed there; 0: nothing
  size_t bytes_ = 0;
};

}  // namespace gxp
