// How long this process has run: real time without the time in which it could not run, because it
// was stopped (SIGSTOP, a cgroup's freezer, a suspended job or machine) or got no CPU. Deadlines
// use it, so that a paused process is not late: a rank that was paused together with its peers
// still has its remaining time, while peers that kept running report a rank that did not.
#pragma once

#include <chrono>
#include <thread>

namespace gxp {

// Counted from an unspecified point. It may step back for a moment while a pause is being counted.
// Any thread; 25 ns.
std::chrono::nanoseconds running_time();
// The running time at a moment of CLOCK_MONOTONIC near to now.
std::chrono::nanoseconds running_time_at(std::chrono::nanoseconds monotonic);

// Reads the clock: a gap of more than kLongestGap since the last reading counts as a pause, except
// for kLongestGap. For a loop that looks often itself; no thread is needed then.
void look_at_running_time();

// While it lives, a thread watches the clock: a pause of any length adds at most kLongestGap to the
// running time. Without it, running time is real time. One at a time.
class RunningTimeWatch {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{50};
  static constexpr std::chrono::milliseconds kLongestGap{200};

  RunningTimeWatch();
  ~RunningTimeWatch();
  RunningTimeWatch(const RunningTimeWatch&) = delete;
  RunningTimeWatch& operator=(const RunningTimeWatch&) = delete;

 private:
  std::jthread thread_;
};

}  // namespace gxp
