// Memory of a device as the host sees it.
#pragma once

#include "lib/device/device.h"

namespace gxp {

// The memory itself if it is the host's, else a copy in pinned memory of the host. The device and
// `memory` outlive it.
class Mirror {
 public:
  Mirror() = default;
  Mirror(Device& device, Memory memory) : memory_(memory) {
    if (memory.space != MemorySpace::kHost) pinned_ = device.allocate_host(memory.bytes);
  }
  // For the host to read and write.
  [[nodiscard]] Memory host() const { return is_apart() ? pinned_.memory() : memory_; }
  // Start a copy on a stream (Stream::copy()): to the device; to the host, which holds it once the
  // stream is finished.
  void send(Stream& stream) const {
    if (is_apart()) stream.copy(memory_, pinned_.memory());
  }
  void fetch(Stream& stream) const {
    if (is_apart()) stream.copy(pinned_.memory(), memory_);
  }

 private:
  [[nodiscard]] bool is_apart() const { return memory_.space != MemorySpace::kHost; }

  Memory memory_;
  Buffer pinned_;
};

}  // namespace gxp
