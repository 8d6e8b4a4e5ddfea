#include "lib/collective/call_queue.h"

#include <pthread.h>

#include "lib/base/log.h"
#include "lib/base/thread.h"

namespace gxp {

void StartedCall::finish(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  done_ = true;
  error_ = std::move(error);
  changed_.notify_all();
}

void StartedCall::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_; });  // ends: the call has a deadline
  if (error_) std::rethrow_exception(error_);
}

void Pending::wait() {
  if (const auto call = std::exchange(call_, nullptr)) call->wait();
}

CallQueue::~CallQueue() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();  // ends: the calls have deadlines
}

Pending CallQueue::push(std::function<void()> work) {
  auto call = std::make_shared<StartedCall>();
  {
    const std::lock_guard lock(mutex_);
    items_.push_back({std::move(work), call});
  }
  changed_.notify_all();
  if (!thread_.joinable()) {
    thread_ = start_thread("gxp-collective", [this](const std::stop_token& stop) { serve(stop); });
  }
  return Pending(std::move(call));
}

void CallQueue::drain() {
  if (!thread_.joinable()) return;  // nothing was ever started
  std::unique_lock lock(mutex_);
  // ends: the calls have deadlines
  changed_.wait(lock, [&] { return items_.empty() && !running_; });
}

void CallQueue::serve(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "gxp-collective");
  set_log_rank(log_rank_);
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !items_.empty(); })) {
    Item item = std::move(items_.front());
    items_.pop_front();
    running_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      item.work();
    } catch (...) {
      error = std::current_exception();
    }
    item.work = nullptr;
    lock.lock();
    running_ = false;
    changed_.notify_all();
    item.call->finish(std::move(error));
  }
}

}  // namespace gxp
