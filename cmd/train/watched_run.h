// A training run that tells others how it is doing.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cmd/train_options.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/job/failure/rank_failure.h"
#include "lib/job/status/status_server.h"

namespace gxp {

// One rank's part; it outlives the run. On rank 0 a StatusServer listens in checkpoint.dir, or in
// train.run_dir where there are no checkpoints.
class WatchedRun {
 public:
  WatchedRun(const RunConfig& run, const RankIdentity& identity, const Environment& environment);
  ~WatchedRun();
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;

  // The job uses this rank's recorder, and lets all ranks be asked.
  void watch(JobSettings& job);
  void joined(const Communicator& communicator);
  // The same options, with what the run notes.
  [[nodiscard]] RunOptions watched(RunOptions options);
  // The run ends with an error: leaves in the directory what this rank can tell, unless it has done so
  // when the job failed. Only once the directory is the run's.
  void report_failure(const std::string& error);

 private:
  void note(const StepMetrics& metrics, double seconds);
  void enter(Activity activity, int64_t step, uint64_t device_peak_bytes);
  void write(std::string error, std::optional<FailureVerdict> verdict,
             std::vector<ThreadStack> threads);
  [[nodiscard]] RankFailure describe(std::string error, std::optional<FailureVerdict> verdict);
  void await_report();

  const std::string directory_;
  FlightRecorder recorder_;
  TrainingFacts facts_;
  RankSurvey survey_;
  const std::map<std::string, std::string> environment_;
  std::string transport_;
  std::mutex last_mutex_;
  std::optional<StepMetrics> last_;  // rank 0's; guarded by last_mutex_
  std::atomic<bool> owns_directory_ = false;
  std::mutex mutex_;           // guards the next two
  std::future<void> written_;  // valid once a report is being written
  std::jthread writer_;        // of the report: where a file system hangs, nobody else does
  std::optional<StatusServer> server_;  // the first to be destroyed: it uses the others
};

}  // namespace gxp
