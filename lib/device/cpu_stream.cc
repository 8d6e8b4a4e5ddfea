#include "lib/device/cpu_stream.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "lib/base/log.h"

namespace gxp {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether `ready` became true within about 5 us (a pause takes up to 140 cycles): longer than the
// gap between two operations of a step, shorter than a sleep and a wake-up.
template <class Ready>
bool spin_until(Ready&& ready) {
  for (int i = 0; i < 100; ++i) {
    if (ready()) return true;
    relax();
  }
  return false;
}

// How many entries of a stream are done.
class Progress {
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

  // Has no deadline of its own: it ends when the works before the point do.
  void wait(uint64_t point) {
    if (spin_until([&] { return passed(point); })) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return passed(point); });
  }

  [[nodiscard]] bool wait_until(uint64_t point, Deadline deadline) {
    if (spin_until([&] { return passed(point); })) return true;
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline.when(), [&] { return passed(point); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<uint64_t> done_{0};  // changed under mutex_, so that no waiter misses it
};

struct CpuEvent final : Event {
  // Owned by the stream, the events recorded on it and the queued waits for those: an event may
  // outlive its stream.
  std::shared_ptr<Progress> progress;
  uint64_t point = 0;
};

// A work to run, or a point of another stream to wait for.
struct Entry {
  const Work* work = nullptr;
  std::shared_ptr<Progress> progress;
  uint64_t point = 0;
};

// First in, first out; a ring that doubles when it is full and never shrinks.
class EntryQueue {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  void push(Entry entry) {
    if (count_ == ring_.size()) grow();
    ring_[(head_ + count_++) % ring_.size()] = std::move(entry);
  }
  Entry pop() {
    Entry entry = std::move(ring_[head_]);
    head_ = (head_ + 1) % ring_.size();
    --count_;
    return entry;
  }

 private:
  void grow() {
    std::vector<Entry> wider(ring_.empty() ? 64 : 2 * ring_.size());
    for (size_t i = 0; i < count_; ++i) wider[i] = std::move(ring_[(head_ + i) % ring_.size()]);
    ring_ = std::move(wider);
    head_ = 0;
  }
  std::vector<Entry> ring_;
  size_t head_ = 0;
  size_t count_ = 0;
};

class CpuStream final : public Stream {
 public:
  explicit CpuStream(std::string_view name)
      : name_(name), thread_([this, rank = log_rank()](const std::stop_token& stop) {
          ::pthread_setname_np(::pthread_self(), name_.substr(0, 15).c_str());
          set_log_rank(rank);
          serve(stop);
        }) {}

  // The jthread asks the loop to stop and joins it.
  ~CpuStream() override = default;
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  void submit(const Work& work) override { push({&work, nullptr, 0}); }

  void record(Event& event) override {
    auto& point = dynamic_cast<CpuEvent&>(event);
    point.progress = progress_;
    point.point = queued_.load(std::memory_order_relaxed);
  }

  void wait(Event& event) override {
    const auto& point = dynamic_cast<CpuEvent&>(event);
    if (point.progress == nullptr || point.progress == progress_) return;
    if (!point.progress->passed(point.point)) push({nullptr, point.progress, point.point});
  }

  void synchronize(Deadline deadline) override {
    if (!progress_->wait_until(queued_.load(std::memory_order_relaxed), deadline)) {
      fail(ErrorKind::kDevice, "synchronise stream '{}': {} is not done after {:g} s", name_,
           running(), deadline.seconds());
    }
    std::exception_ptr error;
    {
      const std::lock_guard lock(mutex_);
      error = std::exchange(error_, nullptr);
    }
    if (error) std::rethrow_exception(error);
  }

 private:
  void push(Entry entry) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push(std::move(entry));
      queued_.fetch_add(1, std::memory_order_release);
    }
    arrived_.notify_one();
  }

  std::string running() {
    const std::lock_guard lock(mutex_);
    return running_ == nullptr ? "what it waits for on another stream"
                               : fmt::format("'{}'", running_->name);
  }

  void serve(const std::stop_token& stop) {
    for (uint64_t taken = 0; wait_for_entry(taken, stop); ++taken) {
      const Entry entry = take();
      if (entry.progress != nullptr) entry.progress->wait(entry.point);
      if (entry.work != nullptr && !stop.stop_requested()) run(*entry.work);
      progress_->advance();
    }
  }

  // False when the stream is to end and its queue is empty.
  bool wait_for_entry(uint64_t taken, const std::stop_token& stop) {
    const auto arrived = [&] { return queued_.load(std::memory_order_acquire) > taken; };
    if (spin_until(arrived)) return true;
    std::unique_lock lock(mutex_);
    return arrived_.wait(lock, stop, arrived);
  }

  Entry take() {
    const std::lock_guard lock(mutex_);
    Entry entry = queue_.pop();
    running_ = error_ ? nullptr : entry.work;
    return entry;
  }

  // Only this thread sets error_, and synchronize() clears it when nothing runs.
  void run(const Work& work) {
    if (running_ == nullptr) return;  // skipped, after an error
    try {
      work.run();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    running_ = nullptr;
  }

  const std::string name_;
  const std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();  // owners: CpuEvent
  std::atomic<uint64_t> queued_{0};  // changed under mutex_, so that the thread misses no entry
  std::mutex mutex_;                 // guards the four below
  std::condition_variable_any arrived_;
  EntryQueue queue_;
  const Work* running_ = nullptr;
  std::exception_ptr error_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace

std::unique_ptr<Stream> make_cpu_stream(std::string_view name) {
  return std::make_unique<CpuStream>(name);
}

std::unique_ptr<Event> make_cpu_event() { return std::make_unique<CpuEvent>(); }

}  // namespace gxp
