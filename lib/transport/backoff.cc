#include "lib/transport/backoff.h"

#include <sched.h>

#include <algorithm>

namespace gxp {

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

void yield_cpu() { sched_yield(); }

int usable_cpus() {
  cpu_set_t set;
  // Fails where there are more CPUs than the set has room for (1,024); then none are scarce.
  if (sched_getaffinity(0, sizeof set, &set) != 0) return CPU_SETSIZE;
  return std::max(1, CPU_COUNT(&set));
}

bool Backoff::keep_awake() {
  if (turn_ < pauses_) {
    ++turn_;
    pause_cpu();
    return true;
  }
  const auto now = Deadline::Clock::now();
  if (!yielding_) {
    yielding_ = true;
    sleep_at_ = now + yield_time_;
  }
  if (now >= sleep_at_) return false;
  sched_yield();
  return true;
}

}  // namespace gxp
