#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/options.h"
#include "cmd/train_options.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/native/step_directory.h"
#include "lib/net/identity/identity.h"
#include "lib/net/launch/job_progress.h"

namespace gxp {

void add_restart_option(CLI::App& app, LaunchRequest& launch) {
  add_under(app, kStartingRanks, [&] {
    add_number_option(
        app, "--max-restarts", launch.max_restarts, 0, 1'000'000,
        "Start all ranks again, at most N times, when one was killed by a signal or has lost a "
        "peer "
        "or its device (exit code 5). They continue from the run's newest checkpoint");
  });
}

void prepare_restarts(TrainOptions& options, const RunConfig& run, const Environment& environment) {
  LaunchRequest& launch = options.launch;
  if (launch.max_restarts == 0) return;
  if (options.only_looks(run) || options.times.by_class)
    fail(ErrorKind::kUsage, "--max-restarts: there is nothing to continue without training");
  if (run.checkpoint.dir.empty())
    fail(
        ErrorKind::kUsage,
        "--max-restarts: checkpoint.dir is not set, so each restart would begin at step 1; set it, "
        "and checkpoint.every");
  if (launch.nnodes > 1)
    fail(ErrorKind::kUsage,
         "--max-restarts: it starts the ranks of one host again; leave out --nnodes");
  const LauncherKind launcher = identity_of_starter(environment).launcher;
  if (launcher == LauncherKind::kGxp) return;
  if (launcher != LauncherKind::kNone)
    fail(ErrorKind::kUsage,
         "--max-restarts: this process was started by another launcher ({}), which alone can start "
         "the ranks again; use its own option",
         to_string(launcher));
  if (run.checkpoint.every == 0)
    log_warn(
        "--max-restarts: checkpoint.every is 0, so the run saves nothing before its end, and each "
        "restart begins where the run began");
  if (launch.nproc == 0) launch.nproc = 1;
  launch.saved_step = [dir = run.checkpoint.dir] {
    const auto steps = complete_steps(dir);
    return steps.empty() ? int64_t{0} : int64_t(steps.back());
  };
}

void connect_to_launcher(TrainOptions& options, const Environment& environment) {
  if (options.launch.max_restarts == 0) return;
  options.run.job = identity_from(environment).job;
  auto inherited = JobProgress::inherited(environment);
  if (!inherited) return;
  // Shared by the two functions.
  const auto progress = std::make_shared<JobProgress>(std::move(*inherited));
  options.run.owns_directories = [progress] { progress->set_owns_directories(); };
  options.run.begins_step = [progress](int64_t step) { progress->set_step(step); };
}

}  // namespace gxp
