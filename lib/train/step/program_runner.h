// Executes a step program: lanes become streams, the edges between them become events.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "lib/program/step_program.h"
#include "lib/zero/lanes.h"
#include "lib/zero/memory/program_memory.h"

namespace gxp {

// Called on the lane's thread at the beginning and the end of each operation.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void begin(const Op& op, Stream& stream) = 0;
  virtual void end(const Op& op) = 0;
};

// Everything is made in the constructor; run() allocates nothing.
//   Threads  one at a time; operations run on the streams' threads.
//   Errors   run() throws the first error of an operation; the operations that would have followed
//            on that lane are skipped.
class ProgramRunner {
 public:
  // `bind` gives, for each operation, the function that carries it out. `lanes`, on which nothing
  // else is queued meanwhile, and `program` outlive the runner.
  using Bind = std::function<std::function<void()>(const Op&)>;
  ProgramRunner(Lanes& lanes, const StepProgram& program, const ProgramMemory& memory,
                const Bind& bind);
  ~ProgramRunner();

  // Runs the whole program once and returns when every lane is done.
  void run(Deadline deadline);
  // By OpId: the seconds of each operation of the last run, including waits for other ranks. On a
  // GPU these are the times to start the kernels; after finish_each(), until the kernels were done.
  [[nodiscard]] const std::vector<double>& seconds() const { return seconds_; }
  void finish_each() { finishes_each_ = true; }
  // `observer` outlives the runs until the next call; null: none.
  void observe(OpObserver* observer) { observer_ = observer; }
  // By Lane; null where the program has no operation.
  [[nodiscard]] const std::array<Stream*, kLaneCount>& streams() const { return streams_; }
  // From now on the streams repeat the operations for which `which` is true (Stream::repeat); these
  // start the same kernels and copies in every run. `otherwise`: what happens if one cannot be
  // recorded.
  void repeat(const std::function<bool(const Op&)>& which, WithoutRecording otherwise);
  void repeat_none() {
    repeat([](const Op&) { return false; }, WithoutRecording::kFail);
  }
  // How many operations of the last run a stream has repeated without calling them.
  [[nodiscard]] int repeated_count() const;
  // The seconds of a lane's operations, summed.
  [[nodiscard]] double busy_seconds(Lane lane) const;

 private:
  // The state of an operation that may be repeated; used by its lane's thread.
  struct Repeated {
    bool on = false;
    std::unique_ptr<Recording> recording;
    bool was_recorded = false;  // in the last run
  };
  [[nodiscard]] std::function<void()> timed(std::function<void()> run, Stream& stream, size_t id);

  const StepProgram& program_;
  bool finishes_each_ = false;
  WithoutRecording without_recording_ = WithoutRecording::kFail;
  OpObserver* observer_ = nullptr;
  std::vector<double> seconds_;                 // each written by its lane's thread
  std::vector<Repeated> repeated_;              // by OpId
  std::vector<Work> works_;                     // by OpId
  std::vector<std::unique_ptr<Event>> events_;  // by OpId; only of operations that others wait for
  std::array<Stream*, kLaneCount> streams_{};
  bool running_ = false;  // an abandoned run leaves unfinished works
};

}  // namespace gxp
