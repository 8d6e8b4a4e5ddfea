// The streams that step programs run on.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "lib/device/device.h"
#include "lib/program/step_program.h"

namespace gxp {

// One stream per lane, created on first use; programs use it one after the other. The device
// outlives this. Threads: one at a time.
class Lanes {
 public:
  explicit Lanes(Device& device) : device_(device) {}
  [[nodiscard]] Device& device() const { return device_; }
  Stream& operator[](Lane lane) {
    std::unique_ptr<Stream>& stream = streams_[size_t(lane)];
    if (stream == nullptr) {
      stream = device_.make_stream(to_string(lane));
      stream->set_watch(watch_);
    }
    return *stream;
  }
  // For all lanes (Stream::set_watch()).
  void set_watch(const std::function<void()>& watch) {
    watch_ = watch;
    for (const auto& stream : streams_)
      if (stream != nullptr) stream->set_watch(watch);
  }

 private:
  Device& device_;
  std::function<void()> watch_;
  std::array<std::unique_ptr<Stream>, kLaneCount> streams_;
};

// Watches the lanes until its end; nothing is queued then.
class LaneWatch {
 public:
  LaneWatch(Lanes& lanes, const std::function<void()>& watch) : lanes_(lanes) {
    lanes.set_watch(watch);
  }
  LaneWatch(const LaneWatch&) = delete;
  LaneWatch& operator=(const LaneWatch&) = delete;
  ~LaneWatch() { lanes_.set_watch({}); }

 private:
  Lanes& lanes_;
};

}  // namespace gxp
