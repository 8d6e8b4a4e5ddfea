// Ordered queues of work, and the events that order one queue against another.
//
// A step's operations run on lanes; each lane is a Stream. The CPU's stream is a thread with a
// queue; CUDA's wraps a cudaStream_t; the simulated device's records who ran before whom.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/device/memory.h"

namespace gxp {

// A range that a piece of work reads or writes. Only the simulated device looks at it.
struct Access {
  const std::byte* data = nullptr;
  size_t bytes = 0;
  bool write = false;
};

// One operation. Made once, before the first step, and submitted in every step: submitting it
// copies and allocates nothing.
struct Work {
  std::string name;  // "forward h.3", for traces, errors and race reports
  std::function<void()> run;
  std::vector<Access> accesses;
};

// A point in a stream's order. Created by Device::make_event(), reused in every step.
class Event {
 public:
  virtual ~Event() = default;
};

// Threads: one thread submits, records, waits and synchronises a given stream.
// Errors: what a Work throws is kept; the stream skips the work that follows (so that nothing waits
// for an event that never comes, events are still signalled), and synchronize() throws it, once.
class Stream {
 public:
  virtual ~Stream() = default;
  // Appends `work`, which must stay alive and unchanged until synchronize() returns. The CPU runs
  // it on the stream's thread; CUDA calls it at once on the caller's, and the kernels it starts are
  // queued.
  virtual void submit(const Work& work) = 0;
  // Marks the end of all work submitted so far. An event recorded anew stands for the new point.
  virtual void record(Event& event) = 0;
  // Work submitted from now on starts only after the point that `event` stands for at this call.
  // An event that was never recorded is passed.
  virtual void wait(Event& event) = 0;
  // Returns when all work is done; throws kDevice at the deadline, or the first error of a Work.
  virtual void synchronize(Deadline deadline) = 0;
};

}  // namespace gxp
