// How a rank waits for its peers before it sleeps: a few pauses, then yields.
#pragma once

#include <chrono>

#include "lib/base/deadline.h"

namespace gxp {

// The CPUs that this process may run on.
int usable_cpus();

// Tells the core that this is a waiting loop: some 10 to 40 ns.
void pause_cpu();
// Yields the core to other threads: 0.2 us if there are none.
void yield_cpu();

// Keeps a waiter awake for a short while. Pausing helps only while every rank of the host has a CPU
// of its own; when ranks outnumber CPUs the peer needs this one, and each pause delays it (4 ranks
// on 2 CPUs, 8 bytes: 2,000 pauses first cost 50 us, none 2.8 us).
//
// A yield to another job's process lasts for that process's time slice, 3 ms and more, whereas a
// woken sleeper gets its own time slice. So where ranks have CPUs of their own and a yield took
// long, the thread's next waits do not yield (docs/RESULTS.md, collectives in shared memory).
class Backoff {
 public:
  // `oversubscribed`: the ranks of this host outnumber its CPUs. `yield_time`: before it is time to
  // sleep.
  Backoff(bool oversubscribed, std::chrono::microseconds yield_time)
      : oversubscribed_(oversubscribed), yield_time_(yield_time) {}
  // Passes a moment; false when it is time to sleep.
  bool keep_awake();
  // Something moved: starts over.
  void reset() {
    turn_ = 0;
    yielding_ = false;
  }

 private:
  static constexpr int kPauses = 100;  // 1 to 4 us
  bool oversubscribed_;
  std::chrono::microseconds yield_time_;
  int turn_ = 0;
  bool yielding_ = false;
  Deadline::Clock::time_point sleep_at_;
};

}  // namespace gxp
