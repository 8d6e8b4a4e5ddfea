// A training run that tells others how it is doing.
#pragma once

#include <optional>

#include "cmd/train_options.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/job/status/status_server.h"

namespace gxp {

// One rank's part; it outlives the run. On rank 0 a StatusServer listens in checkpoint.dir, or in
// train.run_dir where there are no checkpoints.
class WatchedRun {
 public:
  WatchedRun(const RunConfig& run, const RankIdentity& identity);

  // The job uses this rank's recorder, and lets all ranks be asked.
  void watch(JobSettings& job);
  // The same options, with what the run notes.
  [[nodiscard]] RunOptions watched(RunOptions options);

 private:
  void note(const StepMetrics& metrics, double seconds);

  FlightRecorder recorder_;
  TrainingFacts facts_;
  RankSurvey survey_;
  std::optional<StatusServer> server_;  // the first to be destroyed: it uses the others
};

}  // namespace gxp
