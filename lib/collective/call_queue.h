// Calls that were started: they run in order on one thread, which exists from the first on.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "lib/collective/communicator.h"

namespace gxp {

// Owners: the handle and, until the call is done, the queue's item.
class StartedCall {
 public:
  void finish(std::exception_ptr error);
  void wait();  // rethrows `error`

 private:
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr error_;
};

// Threads: one thread pushes and drains. The destructor runs what is queued, then joins.
class CallQueue {
 public:
  explicit CallQueue(int log_rank) : log_rank_(log_rank) {}
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  // An exception of `work` is stored in the handle.
  [[nodiscard]] Pending push(std::function<void()> work);
  // Returns when all that was pushed is done; from here to the next push the thread touches
  // nothing.
  void drain();

 private:
  struct Item {
    std::function<void()> work;
    std::shared_ptr<StartedCall> call;
  };
  void serve(const std::stop_token& stop);

  int log_rank_;
  std::mutex mutex_;  // guards items_ and running_
  std::condition_variable_any changed_;
  std::deque<Item> items_;
  bool running_ = false;
  std::jthread thread_;
};

}  // namespace gxp
