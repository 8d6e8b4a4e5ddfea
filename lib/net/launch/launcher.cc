#include "lib/net/launch/launcher.h"

#include <csignal>
#include <optional>
#include <span>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/running_time.h"
#include "lib/net/launch/host_agreement.h"
#include "lib/net/launch/job_progress.h"
#include "lib/net/launch/rank_launcher.h"
#include "lib/net/launch/rank_program.h"
#include "lib/net/launch/restart_policy.h"
#include "lib/net/launch/signals.h"

namespace gxp {
namespace {

// Attempt after attempt.
class JobLauncher {
 public:
  JobLauncher(const LaunchOptions& options, const Environment& environment)
      : options_(options), environment_(environment), policy_(options.max_restarts) {}

  int run() {
    if (progress_ && options_.host_count > 1) join();
    for (;;) {  // ends: after policy_.most() restarts
      if (progress_) progress_->set_step(0);
      RankLauncher ranks(options_, streams_);
      ranks.run(attempt(), environment_);
      if (!progress_ || !goes_on(ranks)) return ranks.finish();
    }
  }

 private:
  Attempt attempt() {
    RendezvousPoint point = open_rendezvous(options_, environment_);
    if (!progress_) return {.point = std::move(point), .job = ""};
    if (options_.host_count > 1) {
      point.store.port = port_;
      point.listener = std::move(listener_);
    }
    return {std::move(point), job_, attempt_, &*progress_};
  }

  // The other hosts, which may have begun.
  void join() {
    HostReport started;
    started.max_restarts = options_.max_restarts;
    const HostDecision decision = decide_with(started, options_.join_timeout);
    if (!decision.starts)
      fail(ErrorKind::kConfig, "start ranks with the other hosts: {}",
           decision.text.empty() ? "the job has ended" : decision.text);
    follow(decision);
  }

  // Whether another attempt follows.
  bool goes_on(RankLauncher& ranks) {
    const HostReport mine = report(ranks);
    const bool waits = mine.may_restart || mine.succeeded;  // else the others need only be told
    try {
      const HostDecision decision = decide_with(mine, waits ? options_.join_timeout : kTellOthers);
      follow(decision);
      return decision.starts;
    } catch (const Error& error) {
      if (waits) log(LogLevel::kError, fmt::format("no restart: {}", error.what()));
      return false;
    }
  }

  void follow(const HostDecision& decision) {
    if (!decision.text.empty()) log(LogLevel::kWarn, decision.text);
    job_ = decision.job;
    attempt_ = decision.attempt;
    port_ = decision.port;
  }

  HostReport report(RankLauncher& ranks) {
    HostReport mine{.job = job_,
                    .attempt = attempt_,
                    .max_restarts = options_.max_restarts,
                    .succeeded = ranks.succeeded(),
                    .may_restart = ranks.may_restart(),
                    .failure = ranks.failure(),
                    .was_killed = ranks.culprit_was_killed(),
                    .from_outside = ranks.came_from_outside(),
                    .step = progress_->step(),
                    .owns_directories = progress_->owns_directories()};
    try {
      if (mine.may_restart && mine.owns_directories) mine.saved = options_.saved_step();
    } catch (const Error& error) {
      log(LogLevel::kError, fmt::format("no restart: {}", error.what()));
      mine.may_restart = false;
    }
    return mine;
  }

  // Meanwhile a signal ends this process: there are no ranks to be told.
  HostDecision decide_with(const HostReport& mine, std::chrono::milliseconds patience) {
    const auto decides = [this](std::span<const HostReport> reports) {
      return decide(reports, policy_, new_job_);
    };
    if (options_.host_count == 1) return decides(std::span(&mine, 1));
    const auto decides_and_listens = [&](std::span<const HostReport> reports) {
      HostDecision decision = decides(reports);
      if (!decision.starts) return decision;
      listener_ = listen_tcp_within(options_.ports, listening_host(options_), 0);
      decision.port = local_endpoint(listener_.get()).port;
      return decision;
    };
    const RunningTimeWatch time;  // the loop that looked at the clock has ended
    const SignalFd::Released released(streams_.signals, {SIGHUP, SIGINT, SIGTERM, SIGUSR1});
    return agree(options_, environment_, mine, decides_and_listens, Deadline::after(patience));
  }

  void log(LogLevel level, std::string_view message) {
    streams_.err.add(log_line(level, message));
    streams_.err.flush();
  }

  static constexpr std::chrono::milliseconds kTellOthers{5000};

  const LaunchOptions& options_;
  const Environment& environment_;
  LauncherStreams streams_;
  RestartPolicy policy_;
  // 128 random bits: its own.
  const std::string new_job_ = Secret::generate().hex().substr(0, 32);
  std::string job_ = new_job_;
  int attempt_ = 0;
  // Of the next attempt's store, with several hosts.
  int port_ = 0;
  Fd listener_;  // on host 0
  std::optional<JobProgress> progress_ = options_.max_restarts > 0
                                             ? std::optional<JobProgress>(std::in_place)
                                             : std::nullopt;
};

}  // namespace

int launch(const LaunchOptions& options, const Environment& environment) {
  return JobLauncher(options, environment).run();
}

}  // namespace gxp
