// The host's access to buffers under test: host memory itself, or a copy of device memory in pinned
// memory.
#pragma once

#include "lib/device/device.h"

namespace gxp {

class HostView {
 public:
  // Of memory of `device`, which outlives it, up to `most_bytes`. Throws kDevice.
  HostView(Device& device, size_t most_bytes) : device_(device) {
    if (device.space() != MemorySpace::kHost) pinned_ = device.allocate_host(most_bytes);
  }

  // Calls fill(host memory of the same size), whose content `memory` has afterwards.
  template <class Fill>
  void write(Memory memory, const Fill& fill) {
    if (memory.bytes == 0) return;
    if (memory.space == MemorySpace::kHost) return fill(memory);
    fill(copy_of(memory));
    device_.copy(memory, copy_of(memory));
  }

  // Valid until the next call of either.
  [[nodiscard]] ConstMemory read(ConstMemory memory) {
    if (memory.bytes == 0 || memory.space == MemorySpace::kHost) return memory;
    device_.copy(copy_of(memory), memory);
    return copy_of(memory);
  }

 private:
  [[nodiscard]] Memory copy_of(ConstMemory memory) const {
    return pinned_.memory().slice(0, memory.bytes);
  }

  Device& device_;
  Buffer pinned_;  // none: its memory is the host's
};

}  // namespace gxp
