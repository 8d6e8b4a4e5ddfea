#include "lib/train/trace/step_trace.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/collective/communicator.h"
#include "lib/device/stream.h"

namespace gxp {
namespace {

constexpr size_t kMostSlices = 1 << 18;

std::string path_in(const std::string& directory) { return directory + "/trace.json"; }

}  // namespace

StepTrace::StepTrace(std::string_view steps, const std::string& directory,
                     Communicator& communicator, ProgramRunner& runner)
    : range_(parse_profile_range(steps)),
      path_(path_in(directory)),
      communicator_(communicator),
      runner_(runner) {}

void StepTrace::begin_step(int64_t step) {
  if (!range_) return;
  if (step > range_->last) {
    if (!is_on_ && communicator_.rank() == 0)
      log_warn("train.trace_steps {}-{}: the run continues at step {}, so none is traced",
               range_->first, range_->last, step);
    return finish();
  }
  if (!is_on_ && step >= range_->first) begin_trace();
  if (!is_on_) return;
  mark_origins();
  step_ = {.name = "step", .step = step, .begin_ns = monotonic_ns()};
}

void StepTrace::begin_trace() {
  is_on_ = true;
  first_ = measure_clock_offset(communicator_);
  runner_.observe(this);
}

void StepTrace::mark_origins() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    LaneMarks& lane = lanes_[i];
    lane.stream = runner_.streams()[i];
    if (lane.stream == nullptr) continue;
    lane.stream->mark(lane.origin);
    lane.stream->finish(Deadline::after(kComputeTimeout));
    lane.origin_ns = monotonic_ns();
  }
}

void StepTrace::begin(const Op& op, Stream& stream) {
  LaneMarks& lane = lanes_[size_t(op.lane)];
  lane.ops.push_back(&op);
  lane.marks.resize(std::max(lane.marks.size(), 2 * lane.ops.size()));
  stream.mark(lane.marks[2 * lane.ops.size() - 2]);
}

void StepTrace::end(const Op& op) {
  LaneMarks& lane = lanes_[size_t(op.lane)];
  lane.stream->mark(lane.marks[2 * lane.ops.size() - 1]);
}

void StepTrace::end_step(const StepResult& result) {
  if (!is_on_) return;
  leave_activity();
  step_.end_ns = monotonic_ns();
  step_.sent_bytes = result.wire_bytes;
  step_.sent_between_hosts = result.wire_bytes_between_hosts;
  add(step_);
  for (LaneMarks& lane : lanes_) {
    const auto time_of = [&](size_t mark) {
      const double passed = lane.stream->seconds_between(*lane.origin, *lane.marks[mark]);
      return lane.origin_ns + int64_t(passed * 1e9);
    };
    for (size_t i = 0; i < lane.ops.size(); ++i)
      add({.op = lane.ops[i],
           .step = step_.step,
           .begin_ns = time_of(2 * i),
           .end_ns = time_of(2 * i + 1)});
    lane.ops.clear();
  }
}

void StepTrace::enter(Activity activity) {
  if (!is_on_) return;
  leave_activity();
  if (activity == Activity::kCompute) return;  // the lanes have it
  activity_ = {.name = to_string(activity), .step = step_.step, .begin_ns = monotonic_ns()};
}

void StepTrace::leave_activity() {
  if (!activity_) return;
  activity_->end_ns = monotonic_ns();
  add(*activity_);
  activity_.reset();
}

void StepTrace::add(const TraceSlice& slice) {
  if (slices_.size() < kMostSlices)
    slices_.push_back(slice);
  else
    ++dropped_;
}

void StepTrace::finish() {
  range_.reset();
  if (!is_on_) return;
  leave_activity();
  is_on_ = false;
  runner_.observe(nullptr);
  const std::vector<TraceSlice> slices = std::exchange(slices_, {});
  write_trace(path_, {slices, dropped_, first_, measure_clock_offset(communicator_)},
              communicator_);
  if (communicator_.rank() == 0) log_info("trace: {}", path_);
}

void StepTrace::remove(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::remove(path_in(directory), error) && error)
    fail(ErrorKind::kIo, "remove {}: {}", path_in(directory), error.message());
}

}  // namespace gxp
