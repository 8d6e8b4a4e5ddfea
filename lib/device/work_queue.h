// A thread that runs works in order: the common part of the CPU's and the GPUs' streams.
//
// A point in a queue's order is a number: how many entries were queued before it. Waiting for a
// point means waiting until that queue has finished so many entries. Waits refer to points that
// were queued before, so queues can never wait for each other in a circle.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "lib/base/deadline.h"
#include "lib/device/stream.h"

namespace gxp {

// How many entries of a queue are done.
class QueueProgress;

struct QueuePoint {
  // Owned by the queue, its points and the queued waits for those: a point may outlive its queue.
  std::shared_ptr<QueueProgress> progress;  // null: passed
  uint64_t count = 0;
};

// One of: a work to run, which stays alive and unchanged until drain() has returned; an act that no
// error keeps from running; a point of another queue to wait for.
struct QueueEntry {
  const Work* work = nullptr;
  std::function<void()> act{};
  QueuePoint point{};
};

// The thread is named after the queue (the first 15 letters) and logs for the caller's rank.
//   Threads    one pushes, waits and drains.
//   Errors     the first exception of a Work or an act is kept, or kDevice if a point that is
//              waited for makes no progress for kComputeTimeout; later works are skipped, acts are
//              not.
//   Destroying it skips the works that have not started, lets the rest end, and passes its points.
//   Cost       a mutex per call, and an allocation for every seven entries or so.
class WorkQueue {
 public:
  // Its thread calls `at_start` first, and `run` for each work; none: the work's own.
  explicit WorkQueue(std::string_view name, std::function<void()> at_start = {},
                     std::function<void(const Work&)> run = {});
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push(QueueEntry entry);
  // Work that is pushed from now on starts only after the point.
  void wait(const QueuePoint& point);
  // The end of all that was pushed so far.
  [[nodiscard]] QueuePoint point() const;
  // Returns when all is done; throws kDevice if it is not at the deadline and no entry has ended
  // meanwhile. If one has, the wait begins again.
  void drain(Deadline deadline);
  // Throws the first error, once; after drain().
  void rethrow();

 private:
  void serve(const std::stop_token& stop);
  bool wait_for_entry(uint64_t taken, const std::stop_token& stop);
  QueueEntry take();
  void await(const QueuePoint& point) const;
  void finish(std::exception_ptr failure);
  std::string describe_running();

  const std::string name_;
  const std::function<void(const Work&)> run_;
  const std::shared_ptr<QueueProgress> progress_;  // owners: QueuePoint
  std::atomic<uint64_t> queued_{0};  // changed under mutex_, so that the thread misses no entry
  std::mutex mutex_;                 // guards the four below
  std::condition_variable_any arrived_;
  std::deque<QueueEntry> entries_;
  const Work* running_ = nullptr;  // written by the thread alone
  std::exception_ptr error_;
  std::jthread thread_;  // last: is asked to stop and joined before what it uses goes
};

}  // namespace gxp
