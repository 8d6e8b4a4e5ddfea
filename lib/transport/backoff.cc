#include "lib/transport/backoff.h"

#include <sched.h>

#include <algorithm>

#include "lib/base/cpu_pause.h"

namespace gxp {

namespace {

// The instruction takes from 10 to 45 ns, by the CPU; counts of pauses are meant as times.
constexpr double kPauseNs = 30;
int count_pauses() {
  constexpr int kTimes = 64;
  double least_ns = kPauseNs * kTimes;
  for (int i = 0; i < 3; ++i) {
    const auto start = Deadline::Clock::now();
    for (int j = 0; j < kTimes; ++j) pause_cpu_once();
    const std::chrono::duration<double, std::nano> taken = Deadline::Clock::now() - start;
    least_ns = std::min(least_ns, taken.count());
  }
  return std::max(1, int(kPauseNs * kTimes / std::max(least_ns, 1.0)));
}

}  // namespace

void pause_cpu() {
  static const int pauses = count_pauses();
  for (int i = 0; i < pauses; ++i) pause_cpu_once();
}

namespace {

// Slices of schedulers are longer.
constexpr std::chrono::microseconds kForeignSlice{1000};
constexpr int kWaitsWithoutYields = 100;

thread_local int waits_without_yields = 0;

}  // namespace

void yield_cpu() { sched_yield(); }

int usable_cpus() {
  cpu_set_t set;
  // Fails where there are more CPUs than the set has room for (1,024); then none are scarce.
  if (sched_getaffinity(0, sizeof set, &set) != 0) return CPU_SETSIZE;
  return std::max(1, CPU_COUNT(&set));
}

bool Backoff::keep_awake() {
  if (!oversubscribed_ && turn_ < kPauses) {
    ++turn_;
    pause_cpu();
    return true;
  }
  const auto now = Deadline::Clock::now();
  if (!yielding_) {
    yielding_ = true;
    const bool yields = oversubscribed_ || waits_without_yields == 0;
    sleep_at_ = yields ? now + yield_time_ : now;
    if (!yields) --waits_without_yields;
  }
  if (now >= sleep_at_) return false;
  sched_yield();
  if (!oversubscribed_ && Deadline::Clock::now() - now > kForeignSlice)
    waits_without_yields = kWaitsWithoutYields;
  return true;
}

}  // namespace gxp
