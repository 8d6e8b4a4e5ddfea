#include "lib/base/running_time.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "lib/base/thread.h"

namespace gxp {
namespace {

using std::chrono::nanoseconds;
using Count = nanoseconds::rep;

constexpr Count kGap = nanoseconds(RunningTimeWatch::kLongestGap).count();
constexpr Count kNever = std::numeric_limits<Count>::max();

// Of the process, as the clock is. A reader takes `limit` first, a look stores `paused` first: a
// reader between the two gets a time that is too early for a moment, never one that is too late.
std::atomic<Count> limit{kNever};  // monotonic: time after it does not count until the next look
std::atomic<Count> paused{0};

Count monotonic_now() {
  return nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void stop_looking() { limit.store(kNever, std::memory_order_release); }

}  // namespace

nanoseconds running_time_at(nanoseconds monotonic) {
  const Count last = limit.load(std::memory_order_acquire);
  return nanoseconds(std::min(monotonic.count(), last) - paused.load(std::memory_order_acquire));
}

nanoseconds running_time() { return running_time_at(nanoseconds(monotonic_now())); }

void look_at_running_time() {
  const Count now = monotonic_now();
  const Count last = limit.load(std::memory_order_relaxed);
  if (now > last) paused.fetch_add(now - last, std::memory_order_release);
  limit.store(now + kGap, std::memory_order_release);
}

RunningTimeWatch::RunningTimeWatch() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // it takes no signals
  look_at_running_time();
  thread_ = start_thread("gxp-time", [](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "gxp-time");
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      look_at_running_time();
      ended.wait_for(lock, stop, kLookEvery, [] { return false; });
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RunningTimeWatch::~RunningTimeWatch() {
  thread_ = {};  // joins it
  look_at_running_time();
  stop_looking();
}

}  // namespace gxp
