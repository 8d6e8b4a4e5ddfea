// A point in time after which a wait gives up. Every wait in gxp takes one.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>

#include "lib/base/running_time.h"

namespace gxp {

// By running_time(): time in which the process is paused does not count. A wait that a timer of the
// system ends (poll, a condition variable) may therefore end early, and asks expired().
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;  // for measurements
  using Duration = Clock::duration;

  // `duration` from now.
  static Deadline after(Duration duration) { return Deadline(running_time(), duration); }
  // The same, up to a clock tick (10 ms) late; takes 5 ns instead of 25.
  static Deadline roughly_after(Duration duration) {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    constexpr std::chrono::milliseconds kTick{10};
    const auto now = std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    return Deadline(running_time_at(now) + kTick, duration);
  }

  [[nodiscard]] bool expired() const { return running_time() >= when_; }
  // Never negative.
  [[nodiscard]] Duration remaining() const {
    return std::max(Duration::zero(), when_ - running_time());
  }
  // For poll() and its kin: rounded up, so that a wait never spins on zero before the deadline.
  [[nodiscard]] int remaining_ms() const {
    return int(std::chrono::ceil<std::chrono::milliseconds>(remaining()).count());
  }
  [[nodiscard]] bool is_before(const Deadline& other) const { return when_ < other.when_; }
  // How long the whole wait was to last.
  [[nodiscard]] Duration duration() const { return duration_; }
  // The same in seconds, for messages: "... after 30 s".
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(duration_).count(); }

  // Waits for `changed` until done(). False if it is not done at the deadline.
  template <class Condition, class Lock, class Done>
  bool wait(Condition& changed, Lock& lock, Done done) const {
    while (!done()) {
      if (expired()) return false;
      changed.wait_for(lock, remaining());
    }
    return true;
  }

 private:
  Deadline(Duration now, Duration duration) : when_(now + duration), duration_(duration) {}
  Duration when_;
  Duration duration_;
};

inline double seconds_since(Deadline::Clock::time_point start) {
  return std::chrono::duration<double>(Deadline::Clock::now() - start).count();
}

}  // namespace gxp
