// Ordered queues of work, and the events that order one queue against another.
//
// A step's operations run on lanes; each lane is a Stream. The CPU's stream is a thread with a
// queue; CUDA's is one that queues kernels on a cudaStream_t; the simulated device's records the
// order of works.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/device/memory.h"

namespace gxp {

// Bounds arithmetic, whose duration is unknown: on the host the longest time of one operation, as a
// wait begins again where a work has ended meanwhile. Waits for peers have deadlines of their own
// (comm.timeout_s).
inline constexpr std::chrono::hours kComputeTimeout{1};

// A range that a piece of work reads or writes. Only the simulated device uses it.
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

// A stream's behaviour if an operation cannot be recorded.
enum class WithoutRecording : uint8_t {
  kFail,  // the operation fails
  kWarn,  // warns once, and from then on calls its operations without recording
};

// A stream's recording of an operation that starts the same kernels in every step.
class Recording {
 public:
  virtual ~Recording() = default;
};

// A point in the time of a stream, for measurements.
class TimeMark {
 public:
  virtual ~TimeMark() = default;
};

// Threads: one thread submits, records, waits and synchronises a given stream.
// Errors: an exception of a Work is kept; the stream skips the work that follows (but
// signals events, so that nothing waits for one for ever), and synchronize() throws it, once.
class Stream {
 public:
  virtual ~Stream() = default;
  // Appends `work`, which must stay alive and unchanged until synchronize() returns. It runs on the
  // stream's thread; the kernels that it starts on a GPU are queued, and it need not wait for them.
  virtual void submit(const Work& work) = 0;
  // Marks the end of all work submitted so far. An event recorded again means the new point.
  virtual void record(Event& event) = 0;
  // Work submitted from now on starts only after the point that `event` means at this call.
  // An event that was never recorded is passed.
  virtual void wait(Event& event) = 0;
  // Returns when all work is done; throws kDevice at the deadline (on the host only if no work has
  // ended meanwhile, else the wait begins again), or the first error of a Work.
  virtual void synchronize(Deadline deadline) = 0;
  // Returns when nothing runs any more, whatever has failed, or at the deadline: then with words
  // for what still runs. Errors are forgotten.
  [[nodiscard]] virtual std::optional<std::string> settle(Deadline deadline) {
    try {
      synchronize(deadline);
    } catch (const std::exception& error) {
      if (deadline.expired()) return error.what();
    }
    return std::nullopt;
  }
  // On a GPU, synchronize() and finish() call `watch` again and again while they wait, and once
  // when the GPU is done: what it throws ends the wait. So a wait ends with a failure that no work
  // can throw, since a work ends when its kernels are queued: a lost peer of a collective, say.
  // `watch` may be called by several threads at a time. Set while nothing is queued; empty: there
  // is none.
  virtual void set_watch(const std::function<void()>& watch) { static_cast<void>(watch); }

  // The next four are for a Work while it runs on this stream, and for the caller while nothing is
  // queued. On the host, where a kernel is done when it returns, there is nothing to wait for, nor
  // to record.
  //
  // Appends a copy between any two spaces to the kernels and copies started so far. Equal sizes;
  // both stay alive, and `from` unchanged, until the stream is finished or synchronised.
  virtual void copy(Memory to, ConstMemory from) { copy_on_host(to, from); }
  // Returns when all kernels and copies started so far are done; throws kDevice at the deadline.
  virtual void finish(Deadline deadline) { static_cast<void>(deadline); }
  // Calls `start`, or queues the recorded work again. A GPU's stream records the second call (the
  // first allocates memory) in `recording`, which is null at first and belongs to this `start`
  // alone, and queues the recording from then on. `start` queues the same kernels and copies, with
  // the same arguments, each time, on this stream alone; it neither waits nor copies from or to
  // pageable memory. Returns whether the recording was queued instead of a call of `start`.
  virtual bool repeat(std::unique_ptr<Recording>& recording, const std::function<void()>& start,
                      WithoutRecording otherwise) {
    static_cast<void>(recording), static_cast<void>(otherwise);
    start();
    return false;
  }
  // `mark` becomes the time at which all kernels and copies started so far are done. Null at first,
  // afterwards of this stream: it is used again. Not in a call that repeat() records.
  virtual void mark(std::unique_ptr<TimeMark>& mark);

  // Between two marks of this stream, which has been synchronised since.
  [[nodiscard]] virtual double seconds_between(const TimeMark& first, const TimeMark& last) const;
};

}  // namespace gxp
