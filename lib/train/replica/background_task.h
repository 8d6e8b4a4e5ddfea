// Work beside training on a thread of its own, one piece at a time: a save, an export, a replica.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "lib/base/deadline.h"

namespace gxp {

// Threads: one. The work runs on another, and owns what it uses.
class BackgroundTask {
 public:
  using Work = std::function<void(const std::stop_token&)>;

  // `act`: for messages, "save into DIR". `timeout`: comm.timeout_s.
  BackgroundTask(std::string act, double timeout);
  // Asks the work to stop, and waits for a few seconds. If it hangs in a call of the file system, it
  // is left to itself: nothing can end it.
  ~BackgroundTask();

  // Nothing is in flight. `rank`: for the log. kIo: no thread.
  void start(int rank, Work work);
  [[nodiscard]] bool in_flight() const { return done_.valid(); }
  // Throws what the work has failed with.
  void check();
  // Waits for the work, but a moment only. Errors: check()'s; kIo if it does nothing for 10 times
  // the timeout, as where a disk or a server hangs.
  void wait_a_moment();

 private:
  [[nodiscard]] std::chrono::nanoseconds time_of_thread();

  const std::string act_;
  const Deadline::Duration longest_;
  std::future<void> done_;  // valid while work is in flight
  std::chrono::nanoseconds used_{};
  Deadline stuck_ = Deadline::after(longest_);
  std::jthread thread_;
};

}  // namespace gxp
