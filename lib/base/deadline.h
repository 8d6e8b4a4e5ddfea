// A point in time after which a wait gives up. Every wait in gxp takes one.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>

namespace gxp {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  // `duration` from now.
  static Deadline after(Duration duration) { return Deadline(Clock::now() + duration, duration); }
  // The same, up to a clock tick (10 ms) late; takes 5 ns instead of 25.
  static Deadline roughly_after(Duration duration) {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    constexpr std::chrono::milliseconds kTick{10};
    const auto now = std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    return Deadline(Clock::time_point(now) + kTick + duration, duration);
  }

  [[nodiscard]] bool expired() const { return Clock::now() >= when_; }
  // Never negative.
  [[nodiscard]] Duration remaining() const {
    return std::max(Duration::zero(), when_ - Clock::now());
  }
  // For poll() and its kin: rounded up, so that a wait never spins on zero before the deadline.
  [[nodiscard]] int remaining_ms() const {
    return int(std::chrono::ceil<std::chrono::milliseconds>(remaining()).count());
  }
  [[nodiscard]] Clock::time_point when() const { return when_; }
  // How long the whole wait was to last, in seconds, for messages: "... after 30 s".
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(duration_).count(); }

 private:
  Deadline(Clock::time_point when, Duration duration) : when_(when), duration_(duration) {}
  Clock::time_point when_;
  Duration duration_;
};

inline double seconds_since(Deadline::Clock::time_point start) {
  return std::chrono::duration<double>(Deadline::Clock::now() - start).count();
}

}  // namespace gxp
