// A whole training run on one rank: start or resume, then step, log, validate and save until the
// last step or a stop signal.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lib/ckpt/named_tensors.h"
#include "lib/collective/flight/activity.h"
#include "lib/config/run_config.h"
#include "lib/train/metrics.h"
#include "lib/train/model/generation.h"
#include "lib/train/replica/neighbour_copies.h"
#include "lib/train/run_directories.h"
#include "lib/train/step/backend.h"

namespace gxp {

class Communicator;

struct RunOptions {
  bool resume = false;       // go on from the newest checkpoint
  bool overwrite = false;    // or replace an earlier run's checkpoints and metrics; else: refuse
  std::string metrics_path;  // a second copy of metrics.jsonl; "": none
  GenerationRequest generation;   // at the end
  KeyValues settings;             // the run's settings, flattened
  std::string resolved_settings;  // the same as TOML, for the run directory
  // The number of a signal that asks the run to stop, or 0. Asked once per step.
  std::function<int()> stop_signal = [] { return 0; };
  JobNames jobs;           // what this run may be a restart of
  ReplicaPlaces replicas;  // with checkpoint.replica
  // Called on rank 0 when the directories are the job's, and as each step begins.
  std::function<void()> owns_directories = [] {};
  std::function<void(int64_t)> begins_step = [](int64_t) {};
  // Called on each rank: what it does from now on, in the step with this number, and on rank 0 what a
  // step has come to, with a recent average of the seconds of a step. From this thread or from that
  // of a lane, one at a time. Not called before the directories are the job's;
  // rank 0 is the first to load.
  std::function<void(Activity, int64_t step, uint64_t device_peak_bytes)> enters =
      [](Activity, int64_t, uint64_t) {};
  std::function<void(const StepMetrics&, double seconds)> ends_step = [](const StepMetrics&,
                                                                         double) {};
};

struct RunSummary {
  int64_t steps = 0;
  std::optional<double> loss;         // of the last step; none was made: nothing
  std::optional<double> valid_start;  // before the first step of this run
  std::optional<double> valid_end;
  double tokens_per_s = 0;  // median over the steps
  double seconds = 0;       // of all steps
  size_t parameters = 0;
  uint64_t peak_bytes = 0;
  Tokens generated;           // with the prompt. Rank 0 only
  std::string metrics_error;  // why metrics are missing; "": they are complete. Rank 0 only
  int signal = 0;             // the largest of all ranks' stop signals; 0: the run is complete
};

// [collective] Locks the run's directories meanwhile. Errors: as claim_directories (on every rank,
// before anything is written), Trainer, save_state, resume_state, and MetricsFile before the first
// step; after that the summary reports metrics that cannot be written, and the run goes on.
RunSummary run_training(const RunConfig& config, Communicator& communicator, Backend& backend,
                        const RunOptions& options);

}  // namespace gxp
