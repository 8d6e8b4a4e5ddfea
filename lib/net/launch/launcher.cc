#include "lib/net/launch/launcher.h"

#include <optional>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/net/launch/job_progress.h"
#include "lib/net/launch/rank_launcher.h"
#include "lib/net/launch/rank_program.h"
#include "lib/net/launch/restart_policy.h"

namespace gxp {
namespace {

// Attempt after attempt.
class JobLauncher {
 public:
  JobLauncher(const LaunchOptions& options, const Environment& environment)
      : options_(options), environment_(environment), policy_(options.max_restarts) {}

  int run() {
    for (;;) {  // ends: after policy_.most() restarts
      if (progress_) progress_->set_step(0);
      RankLauncher ranks(options_, streams_);
      ranks.run(attempt(), environment_);
      if (!progress_ || !ranks.may_restart() || !restarts(ranks)) return ranks.finish();
    }
  }

 private:
  Attempt attempt() {
    RendezvousPoint point = open_rendezvous(options_, environment_);
    if (!progress_) return {std::move(point), "", nullptr};
    return {std::move(point), job_, &*progress_};
  }

  // Whether another attempt follows this one, which failed.
  bool restarts(const RankLauncher& ranks) {
    const int64_t step = progress_->step();
    int64_t saved = 0;
    try {
      if (progress_->owns_directories()) saved = options_.saved_step();
    } catch (const Error& error) {
      log(LogLevel::kError, fmt::format("no restart: {}", error.what()));
      return false;
    }
    const auto refusal = policy_.refuse({step, saved, ranks.came_from_outside()});
    if (refusal) log(LogLevel::kWarn, fmt::format("no restart: {}", *refusal));
    if (refusal) return false;
    const std::string where = step > 0 ? fmt::format("in step {}", step) : "before its first step";
    const std::string start =
        saved > 0 ? fmt::format("continuing from the checkpoint of step {}", saved)
        : progress_->owns_directories() ? "starting anew, without a checkpoint"
                                        : "starting as at first";
    log(LogLevel::kWarn, fmt::format("restart {} of {}: {} {}; {}", policy_.count(), policy_.most(),
                                     ranks.failure(), where, start));
    return true;
  }

  void log(LogLevel level, std::string_view message) {
    streams_.err.add(log_line(level, message));
    streams_.err.flush();
  }

  const LaunchOptions& options_;
  const Environment& environment_;
  LauncherStreams streams_;
  RestartPolicy policy_;
  const std::string job_ = Secret::generate().hex().substr(0, 32);  // 128 random bits: its own
  std::optional<JobProgress> progress_ = options_.max_restarts > 0
                                             ? std::optional<JobProgress>(std::in_place)
                                             : std::nullopt;
};

}  // namespace

int launch(const LaunchOptions& options, const Environment& environment) {
  return JobLauncher(options, environment).run();
}

}  // namespace gxp
