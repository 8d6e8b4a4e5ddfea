// What a communicator gives for a device and its memory: handles that end what it began.
#pragma once

#include <functional>
#include <utility>

#include "lib/base/error.h"
#include "lib/collective/engine/engine.h"
#include "lib/device/memory.h"

namespace gxp {

// While this object lives, a communicator's calls accept the device's memory. It is destroyed
// before the device and the communicator, while no call is under way.
class JoinedDevice {
 public:
  JoinedDevice() : support_{false, "there is no device"} {}
  // `engine`, which outlives this, has joined the device, with the verdict `support`. After
  // `forget_calls` returns, nobody looks at queued calls any more.
  JoinedDevice(Engine& engine, Support support, std::function<void()> forget_calls)
      : engine_(&engine), support_(std::move(support)), forget_calls_(std::move(forget_calls)) {}
  JoinedDevice(JoinedDevice&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)),
        support_(std::move(other.support_)),
        forget_calls_(std::move(other.forget_calls_)) {}
  JoinedDevice& operator=(JoinedDevice&& other) = delete;
  ~JoinedDevice() {
    if (engine_ == nullptr) return;
    forget_calls_();
    engine_->leave_device();
  }
  // Whether calls accept its memory; if not, why not. The same on all ranks.
  [[nodiscard]] const Support& support() const { return support_; }

 private:
  Engine* engine_ = nullptr;
  Support support_;
  std::function<void()> forget_calls_;
};

// While this object lives, a communicator's engine keeps this memory of the joined device
// registered. It is destroyed before the memory and the communicator, while no rank has a call
// under way.
class KeptMemory {
 public:
  KeptMemory(Engine& engine, Memory memory) : engine_(&engine), memory_(memory) {}
  KeptMemory(KeptMemory&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)), memory_(other.memory_) {}
  KeptMemory& operator=(KeptMemory&& other) = delete;
  ~KeptMemory() {
    if (engine_ != nullptr) engine_->forget_memory(memory_);
  }

 private:
  Engine* engine_ = nullptr;
  Memory memory_;
};

}  // namespace gxp
