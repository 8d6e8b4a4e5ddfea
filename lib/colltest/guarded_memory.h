// A buffer under test with guard words on both sides, so that a write outside of what a call was
// given is found.
#pragma once

#include <cstddef>

#include "lib/collective/communicator.h"
#include "lib/device/device.h"

namespace gxp {

class GuardedMemory {
 public:
  // Room for `bytes`, of a communicator, which peers reach directly, or of the device; both outlive
  // it. Every page is touched.
  GuardedMemory(Communicator& communicator, size_t bytes);
  GuardedMemory(Device& device, size_t bytes);

  // `bytes` that begin `offset` bytes behind a page boundary, with guards around them from now on.
  Memory place(size_t offset, size_t bytes);
  // Guard words that no longer hold what place() wrote; 0 before it.
  [[nodiscard]] size_t damaged() const;

 private:
  void touch(size_t bytes);

  CommunicatorMemory shared_;
  Buffer own_;
  Memory whole_;  // begins at a page
  Memory placed_;
};

}  // namespace gxp
