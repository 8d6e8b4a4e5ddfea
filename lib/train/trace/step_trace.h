// train.trace_steps: records what this rank does in some steps, and writes it with the other ranks.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/collective/flight/activity.h"
#include "lib/config/profile_range.h"
#include "lib/train/step/program_runner.h"
#include "lib/train/step/step_result.h"
#include "lib/train/trace/trace_file.h"

namespace gxp {

// The trace begins with the first of the steps, or of those that a resumed run still makes, and ends
// before the step after the last: it has the validation and the save that follow the last.
//   Order    begin_step(), the step, end_step(), and so on; finish().
//   Threads  the run's; begin() and end() as OpObserver, enter() as RunOptions::enters.
//   Memory   262,144 slices, about 20 MiB; later ones are dropped and counted.
//   Cost     without steps none; else two readings of the clock per operation, and afterwards
//            one message per rank.
//   Errors   those of write_trace(), from begin_step() and finish().
class StepTrace final : public OpObserver {
 public:
  // `steps`: "10-12"; "": it does nothing. `directory`: of the file. The other two outlive it.
  StepTrace(std::string_view steps, const std::string& directory, Communicator& communicator,
            ProgramRunner& runner);
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // [collective] While no operation runs, as end_step() and finish().
  void begin_step(int64_t step);
  void end_step(const StepResult& result);
  // What the rank does from now on.
  void enter(Activity activity);
  // [collective] Writes what is not written yet.
  void finish();

  // The file of an earlier run. kIo.
  static void remove(const std::string& directory);

  void begin(const Op& op, Stream& stream) override;
  void end(const Op& op) override;

 private:
  // The operations of a step. Marks 2i and 2i + 1 are the begin and end of ops[i].
  struct LaneMarks {
    Stream* stream = nullptr;
    std::unique_ptr<TimeMark> origin;  // at the step's begin
    int64_t origin_ns = 0;             // the same time
    std::vector<std::unique_ptr<TimeMark>> marks;
    std::vector<const Op*> ops;
  };
  void begin_trace();
  void mark_origins();
  void leave_activity();
  void add(const TraceSlice& slice);

  std::optional<ProfileRange> range_;  // until it is written
  const std::string path_;
  Communicator& communicator_;
  ProgramRunner& runner_;
  bool is_on_ = false;
  ClockOffset first_;                        // measured when the trace began
  std::array<LaneMarks, kLaneCount> lanes_;  // each used by its lane's thread during a step
  std::vector<TraceSlice> slices_;
  uint64_t dropped_ = 0;
  TraceSlice step_;                     // that the run is in
  std::optional<TraceSlice> activity_;  // likewise
};

}  // namespace gxp
