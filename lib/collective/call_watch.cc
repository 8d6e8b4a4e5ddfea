#include "lib/collective/call_watch.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "lib/base/log.h"
#include "lib/base/thread.h"
#include "lib/transport/backoff.h"

namespace gxp {

CallWatch::~CallWatch() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();  // ends: it looks, and sleeps for kPause
}

void CallWatch::add(Watched watched) {
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(watched));
  }
  changed_.notify_all();
  if (!thread_.joinable())
    thread_ = start_thread("gxp-call-watch", [this](const std::stop_token& stop) { serve(stop); });
}

// Whether the call is done.
bool CallWatch::passes(Watched& watched) {
  const QueuedCall::Progress progress = watched.call->look();
  if (progress == QueuedCall::Progress::kRuns) {
    if (!deadline_) deadline_ = Deadline::after(watched.timeout);
    if (deadline_->expired())
      fail(ErrorKind::kPeer, "wait for the other ranks on the GPU: not done after {:g} s",
           deadline_->seconds());
  }
  return progress == QueuedCall::Progress::kDone;
}

// Whether no call is left.
bool CallWatch::look() {
  std::unique_lock lock(mutex_);
  try {
    while (!calls_.empty() && passes(calls_.front())) {
      calls_.pop_front();
      deadline_.reset();
    }
    return calls_.empty();
  } catch (const Error& error) {
    const Watched failed = std::move(calls_.front());
    calls_.clear();
    deadline_.reset();
    const std::lock_guard handling(handling_);
    lock.unlock();  // to find the cause takes a second
    on_failure_(failed, error);
    return true;
  }
}

void CallWatch::drain() {
  Backoff backoff(false, std::chrono::hours(1));
  while (!look())
    if (!backoff.keep_awake()) yield_cpu();
}

bool CallWatch::is_busy(const Engine& engine) {
  look();
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(calls_, [&](const Watched& call) { return call.engine == &engine; });
}

void CallWatch::forget_if(const std::function<bool(const Watched&)>& which) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(calls_, which);
    deadline_.reset();
  }
  const std::lock_guard handled(handling_);
}

void CallWatch::serve(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kPause{2};
  pthread_setname_np(pthread_self(), "gxp-call-watch");
  set_log_rank(log_rank_);
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !calls_.empty(); })) {
    lock.unlock();
    look();
    lock.lock();
    changed_.wait_for(lock, stop, kPause, [] { return false; });
  }
}

}  // namespace gxp
