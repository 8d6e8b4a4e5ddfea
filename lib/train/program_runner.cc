#include "lib/train/program_runner.h"

#include <chrono>
#include <exception>

namespace gxp {
namespace {

std::function<void()> timed(std::function<void()> run, double& seconds) {
  return [run = std::move(run), &seconds] {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
}

}  // namespace

ProgramRunner::ProgramRunner(Device& device, const StepProgram& program,
                             const ProgramMemory& memory, const Bind& bind)
    : program_(program), seconds_(program.ops.size()), events_(program.ops.size()) {
  works_.reserve(program.ops.size());
  for (const Op& op : program.ops) {
    Work& work =
        works_.emplace_back(Work{describe(op), timed(bind(op), seconds_[works_.size()]), {}});
    for (const BufferUse& use : op.uses) work.accesses.push_back(memory.access(use));
    for (const OpId before : op.after) {
      if (events_[size_t(before)] == nullptr) events_[size_t(before)] = device.make_event();
    }
  }
  streams_.resize(kLaneCount);
  for (const Op& op : program.ops) {
    std::unique_ptr<Stream>& stream = streams_[size_t(op.lane)];
    if (stream == nullptr) stream = device.make_stream(to_string(op.lane));
  }
}

void ProgramRunner::run(Deadline deadline) {
  for (size_t id = 0; id < works_.size(); ++id) {
    const Op& op = program_.ops[id];
    Stream& stream = *streams_[size_t(op.lane)];
    for (const OpId before : op.after) stream.wait(*events_[size_t(before)]);
    stream.submit(works_[id]);
    if (events_[id] != nullptr) stream.record(*events_[id]);
  }
  // Compute last: when a lane fails, the others go on with what they have, and a failure to
  // communicate or to fetch is the cause of whatever the compute lane says.
  std::exception_ptr first;
  for (const Lane lane : {Lane::kComm, Lane::kOffload, Lane::kCompute}) {
    if (streams_[size_t(lane)] == nullptr) continue;
    try {
      streams_[size_t(lane)]->synchronize(deadline);
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

double ProgramRunner::busy_seconds(Lane lane) const {
  double sum = 0;
  for (size_t id = 0; id < seconds_.size(); ++id) {
    if (program_.ops[id].lane == lane) sum += seconds_[id];
  }
  return sum;
}

}  // namespace gxp
