// A thread that runs works in order: the common part of the CPU's and the GPUs' streams.
//
// A point in a queue's order is a number: how many entries were queued before it. Waiting for a
// point means waiting until that queue has finished so many entries. Waits refer to points that
// were queued before, so queues can never wait for each other in a circle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

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

  // The work stays alive and unchanged until drain() has returned.
  void push(const Work& work);
  void push(std::function<void()> act);
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
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gxp
