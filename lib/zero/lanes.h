// The streams that step programs run on.
#pragma once

#include <array>
#include <memory>

#include "lib/device/device.h"
#include "lib/program/step_program.h"

namespace gxp {

// One stream per lane, created on first use; programs take turns on it. The device outlives this.
// Threads: one at a time.
class Lanes {
 public:
  explicit Lanes(Device& device) : device_(device) {}
  [[nodiscard]] Device& device() const { return device_; }
  Stream& operator[](Lane lane) {
    std::unique_ptr<Stream>& stream = streams_[size_t(lane)];
    if (stream == nullptr) stream = device_.make_stream(to_string(lane));
    return *stream;
  }

 private:
  Device& device_;
  std::array<std::unique_ptr<Stream>, kLaneCount> streams_;
};

}  // namespace gxp
