#include "lib/device/work_queue.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
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

namespace {

// One of: a work to run, an act that no error keeps from running, a point of another queue to wait
// for.
struct QueueEntry {
  const Work* work = nullptr;
  std::function<void()> act;
  QueuePoint point;
};

}  // namespace

struct WorkQueue::Impl {
  Impl(std::string_view the_name, std::function<void()> at_start,
       std::function<void(const Work&)> the_run)
      : name(the_name),
        run_work(std::move(the_run)),
        thread(
            [this, at_start = std::move(at_start), rank = log_rank()](const std::stop_token& stop) {
              ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
              set_log_rank(rank);
              if (at_start) attempt(at_start);
              serve(stop);
            }) {}

  void push(QueueEntry entry) {
    {
      const std::lock_guard lock(mutex);
      entries.push_back(std::move(entry));
      queued.fetch_add(1, std::memory_order_release);
    }
    arrived.notify_one();
  }

  std::string describe_running() {
    const std::lock_guard lock(mutex);
    return running == nullptr ? "what it waits for on another stream"
                              : fmt::format("'{}'", running->name);
  }

  void serve(const std::stop_token& stop) {
    for (uint64_t taken = 0; wait_for_entry(taken, stop); ++taken) {
      const QueueEntry entry = take();
      if (entry.point.progress != nullptr) attempt([&] { await(entry.point); });
      if (entry.act) attempt(entry.act);
      if (entry.work != nullptr && !stop.stop_requested()) run(*entry.work);
      progress->advance();
    }
  }

  // False when the queue is to end and is empty.
  bool wait_for_entry(uint64_t taken, const std::stop_token& stop) {
    const auto has_arrived = [&] { return queued.load(std::memory_order_acquire) > taken; };
    if (spin_until(has_arrived)) return true;
    std::unique_lock lock(mutex);
    return arrived.wait(lock, stop, has_arrived);
  }

  void await(const QueuePoint& point) const {
    if (point.progress->wait(point.count, Deadline::after(kComputeTimeout))) return;
    fail(ErrorKind::kDevice,
         "stream '{}': another stream that it waits for has made no progress for {} h", name,
         kComputeTimeout.count());
  }

  QueueEntry take() {
    const std::lock_guard lock(mutex);
    QueueEntry entry = std::move(entries.front());
    entries.pop_front();
    running = error ? nullptr : entry.work;
    return entry;
  }

  void run(const Work& work) {
    if (running == nullptr) return;  // skipped, after an error
    if (run_work)
      attempt([&] { run_work(work); });
    else
      attempt(work.run);
    const std::lock_guard lock(mutex);
    running = nullptr;
  }

  // Only this thread sets `error`, and rethrow() clears it when nothing runs.
  void attempt(const std::function<void()>& act) {
    try {
      act();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  const std::string name;
  const std::function<void(const Work&)> run_work;
  const std::shared_ptr<QueueProgress> progress = std::make_shared<QueueProgress>();  // QueuePoint
  std::atomic<uint64_t> queued{0};  // changed under mutex, so that the thread misses no entry
  std::mutex mutex;                 // guards the four below
  std::condition_variable_any arrived;
  std::deque<QueueEntry> entries;
  const Work* running = nullptr;
  std::exception_ptr error;
  std::jthread thread;  // last: is asked to stop and joined before what it uses goes
};

WorkQueue::WorkQueue(std::string_view name, std::function<void()> at_start,
                     std::function<void(const Work&)> run)
    : impl_(std::make_unique<Impl>(name, std::move(at_start), std::move(run))) {}
WorkQueue::~WorkQueue() = default;

void WorkQueue::push(const Work& work) { impl_->push({&work, {}, {}}); }
void WorkQueue::push(std::function<void()> act) { impl_->push({nullptr, std::move(act), {}}); }

void WorkQueue::wait(const QueuePoint& point) {
  if (point.progress == nullptr || point.progress == impl_->progress) return;
  if (!point.progress->passed(point.count)) impl_->push({nullptr, {}, point});
}

QueuePoint WorkQueue::point() const {
  return {impl_->progress, impl_->queued.load(std::memory_order_relaxed)};
}

void WorkQueue::drain(Deadline deadline) {
  if (impl_->progress->wait(impl_->queued.load(std::memory_order_relaxed), deadline)) return;
  fail(ErrorKind::kDevice, "synchronise stream '{}': {} has not finished after {:g} s", impl_->name,
       impl_->describe_running(), deadline.seconds());
}

void WorkQueue::rethrow() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(impl_->mutex);
    error = std::exchange(impl_->error, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace gxp
