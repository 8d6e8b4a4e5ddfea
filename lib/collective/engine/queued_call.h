// A call that an engine has queued on a GPU (Engine::enqueue()): the host learns by asking how far
// it is. It outlives neither its engine nor the GPU's device.
#pragma once

#include <cstdint>

namespace gxp {

class QueuedCall {
 public:
  enum class Progress : uint8_t {
    kWaits,  // for the caller's stream, or for calls that were queued before
    kRuns,   // on the GPU, with other ranks
    kDone,
  };
  virtual ~QueuedCall() = default;
  // Never waits. Throws kPeer or kDevice if it has failed; it is not asked again then.
  // Threads: one at a time, any.
  [[nodiscard]] virtual Progress look() = 0;
};

}  // namespace gxp
