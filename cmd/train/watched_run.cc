#include "cmd/train/watched_run.h"

#include <utility>

namespace gxp {

WatchedRun::WatchedRun(const RunConfig& run, const RankIdentity& identity)
    : recorder_(identity.rank, identity.world_size, run.comm.flight_recorder) {
  facts_.total_steps = run.train.steps;
  const std::string& directory =
      run.checkpoint.dir.empty() ? run.train.run_dir : run.checkpoint.dir;
  if (identity.rank == 0) server_.emplace(directory, JobSources{recorder_, facts_, survey_});
}

void WatchedRun::watch(JobSettings& job) {
  job.recorder = &recorder_;
  job.survey = &survey_;
}

RunOptions WatchedRun::watched(RunOptions options) {
  options.enters = [this](Activity activity, int64_t step) {
    recorder_.enter_activity(activity, step);
    if (server_ && activity == Activity::kLoad) server_->own_directory();
  };
  options.ends_step = [this](const StepMetrics& metrics, double seconds) {
    note(metrics, seconds);
  };
  return options;
}

void WatchedRun::note(const StepMetrics& metrics, double seconds) {
  const StepResult& result = metrics.result;
  facts_.loss = result.loss;
  facts_.seconds_per_step = seconds;
  facts_.tokens_per_step = double(result.tokens);
  facts_.device_peak_bytes = metrics.peak.total();
  facts_.step_ended = std::chrono::steady_clock::now().time_since_epoch().count();
  facts_.steps_done = result.step;
  ++facts_.steps_made;
}

}  // namespace gxp
