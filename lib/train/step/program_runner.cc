#include "lib/train/step/program_runner.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "lib/train/step/leave.h"

namespace gxp {

std::function<void()> ProgramRunner::timed(std::function<void()> run, Stream& stream, size_t id) {
  return
      [this, run = std::move(run), &stream, id, &seconds = seconds_[id], &again = repeated_[id]] {
        const auto start = std::chrono::steady_clock::now();
        if (observer_ != nullptr) observer_->begin(program_.ops[id], stream);
        if (again.on)
          again.was_recorded = stream.repeat(again.recording, run, without_recording_);
        else
          run();
        if (observer_ != nullptr) observer_->end(program_.ops[id]);
        if (finishes_each_) stream.finish(Deadline::after(kComputeTimeout));
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      };
}

ProgramRunner::ProgramRunner(Lanes& lanes, const StepProgram& program, const ProgramMemory& memory,
                             const Bind& bind)
    : program_(program),
      seconds_(program.ops.size()),
      repeated_(program.ops.size()),
      events_(program.ops.size()) {
  works_.reserve(program.ops.size());
  for (const Op& op : program.ops) {
    Stream& stream = lanes[op.lane];
    streams_[size_t(op.lane)] = &stream;
    Work& work =
        works_.emplace_back(Work{describe(op), timed(bind(op), stream, works_.size()), {}});
    for (const BufferUse& use : op.uses) work.accesses.push_back(memory.access(use));
    for (const OpId before : op.after)
      if (events_[size_t(before)] == nullptr) events_[size_t(before)] = lanes.device().make_event();
  }
}

ProgramRunner::~ProgramRunner() {
  // The works of a run that has thrown before it waited must not outlive this.
  if (running_) settle_or_leave(streams_, Deadline::after(kSettleTimeout), nullptr);
}

void ProgramRunner::run(Deadline deadline) {
  running_ = true;
  for (size_t id = 0; id < works_.size(); ++id) {
    const Op& op = program_.ops[id];
    Stream& stream = *streams_[size_t(op.lane)];
    for (const OpId before : op.after) stream.wait(*events_[size_t(before)]);
    stream.submit(works_[id]);
    if (events_[id] != nullptr) stream.record(*events_[id]);
  }
  // Compute last: when a lane fails, the others go on with what they have, and a failure to
  // communicate or to fetch causes the compute lane's error.
  try {
    for (const Lane lane : {Lane::kComm, Lane::kOffload, Lane::kCompute})
      if (streams_[size_t(lane)] != nullptr) streams_[size_t(lane)]->synchronize(deadline);
  } catch (...) {
    settle_or_leave(streams_, Deadline::after(kSettleTimeout), std::current_exception());
    throw;
  }
  running_ = false;
}

void ProgramRunner::repeat(const std::function<bool(const Op&)>& which,
                           WithoutRecording otherwise) {
  without_recording_ = otherwise;
  for (size_t id = 0; id < repeated_.size(); ++id) repeated_[id].on = which(program_.ops[id]);
}

int ProgramRunner::repeated_count() const {
  return int(std::ranges::count_if(repeated_, &Repeated::was_recorded));
}

double ProgramRunner::busy_seconds(Lane lane) const {
  double sum = 0;
  for (size_t id = 0; id < seconds_.size(); ++id)
    if (program_.ops[id].lane == lane) sum += seconds_[id];
  return sum;
}

}  // namespace gxp
