#include "lib/device/work_queue.h"

#include <pthread.h>

#include <utility>

#include "lib/base/cpu_pause.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

// Whether `ready` became true within about 5 us (a pause takes up to 140 cycles): longer than the
// gap between two operations of a step, shorter than a sleep and a wake-up.
template <class Ready>
bool spin_until(Ready&& ready) {
  for (int i = 0; i < 100; ++i) {
    if (ready()) return true;
    pause_cpu_once();
  }
  return false;
}

}  // namespace

class QueueProgress {
 public:
  void advance() {
    {
      const std::lock_guard lock(mutex_);
      done_.fetch_add(1, std::memory_order_release);
    }
    changed_.notify_all();
  }

  [[nodiscard]] bool passed(uint64_t point) const {
    return done_.load(std::memory_order_acquire) >= point;
  }

  // False if it is not passed at the deadline, unless the queue has advanced meanwhile: each time,
  // the wait begins again.
  [[nodiscard]] bool wait(uint64_t point, Deadline deadline) {
    const auto is_passed = [&] { return passed(point); };
    if (spin_until(is_passed)) return true;
    std::unique_lock lock(mutex_);
    for (;;) {
      const uint64_t before = done_;
      if (deadline.wait(changed_, lock, is_passed)) return true;
      if (done_ == before) return false;
      deadline = Deadline::after(deadline.duration());
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<uint64_t> done_{0};  // changed under mutex_, so that no waiter misses it
};

WorkQueue::WorkQueue(std::string_view name, std::function<void()> at_start,
                     std::function<void(const Work&)> run)
    : name_(name),
      run_(std::move(run)),
      progress_(std::make_shared<QueueProgress>()),
      thread_([this, rank = log_rank()](const std::stop_token& stop) {
        ::pthread_setname_np(::pthread_self(), name_.substr(0, 15).c_str());
        set_log_rank(rank);
        serve(stop);
      }) {
  if (at_start) push({.act = std::move(at_start)});
}

WorkQueue::~WorkQueue() = default;

void WorkQueue::push(QueueEntry entry) {
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
    queued_.fetch_add(1, std::memory_order_release);
  }
  arrived_.notify_one();
}

void WorkQueue::serve(const std::stop_token& stop) {
  for (uint64_t taken = 0; wait_for_entry(taken, stop); ++taken) {
    const QueueEntry entry = take();
    std::exception_ptr failure;
    try {
      if (entry.point.progress != nullptr) await(entry.point);
      if (entry.act) entry.act();
      if (running_ != nullptr && !stop.stop_requested()) {
        if (run_)
          run_(*running_);
        else
          running_->run();
      }
    } catch (...) {
      failure = std::current_exception();
    }
    finish(std::move(failure));
  }
}

// False when the queue is to end and is empty.
bool WorkQueue::wait_for_entry(uint64_t taken, const std::stop_token& stop) {
  const auto has_arrived = [&] { return queued_.load(std::memory_order_acquire) > taken; };
  if (spin_until(has_arrived)) return true;
  std::unique_lock lock(mutex_);
  return arrived_.wait(lock, stop, has_arrived);
}

// After an error a work is skipped. Only this thread sets error_, and rethrow() clears it when
// nothing runs.
QueueEntry WorkQueue::take() {
  const std::lock_guard lock(mutex_);
  QueueEntry entry = std::move(entries_.front());
  entries_.pop_front();
  running_ = error_ ? nullptr : entry.work;
  return entry;
}

void WorkQueue::await(const QueuePoint& point) const {
  if (point.progress->wait(point.count, Deadline::after(kComputeTimeout))) return;
  fail(ErrorKind::kDevice,
       "stream '{}': another stream that it waits for has made no progress for {} h", name_,
       kComputeTimeout.count());
}

// The work may be gone once the progress says that it is done, so nothing names it from then on.
void WorkQueue::finish(std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(failure);
    running_ = nullptr;
  }
  progress_->advance();
}

void WorkQueue::wait(const QueuePoint& point) {
  if (point.progress == nullptr || point.progress == progress_) return;
  if (!point.progress->passed(point.count)) push({.point = point});
}

QueuePoint WorkQueue::point() const { return {progress_, queued_.load(std::memory_order_relaxed)}; }

void WorkQueue::drain(Deadline deadline) {
  if (progress_->wait(queued_.load(std::memory_order_relaxed), deadline)) return;
  fail(ErrorKind::kDevice, "synchronise stream '{}': {} has not finished after {:g} s", name_,
       describe_running(), deadline.seconds());
}

std::string WorkQueue::describe_running() {
  const std::lock_guard lock(mutex_);
  return running_ == nullptr ? "what it waits for on another stream"
                             : fmt::format("'{}'", running_->name);
}

void WorkQueue::rethrow() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace gxp
