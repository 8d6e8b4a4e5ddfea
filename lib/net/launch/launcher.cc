#include "lib/net/launch/launcher.h"

#include <csignal>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/running_time.h"
#include "lib/base/text/read_number.h"
#include "lib/net/launch/held_parts.h"
#include "lib/net/launch/host_agreement.h"
#include "lib/net/launch/host_memory.h"
#include "lib/net/launch/job_progress.h"
#include "lib/net/launch/rank_launcher.h"
#include "lib/net/launch/rank_program.h"
#include "lib/net/launch/restart_policy.h"
#include "lib/net/launch/signals.h"
#include "lib/net/store/facts.h"

namespace gxp {
namespace {

// Attempt after attempt.
class JobLauncher {
 public:
  JobLauncher(const LaunchOptions& options, const Environment& environment)
      : options_(options), environment_(environment), policy_(options.max_restarts) {}

  int run() {
    if (meetings_) {
      if (const auto code = join()) return *code;
    }
    for (;;) {                                      // ends: after policy_.most() restarts
      if (meetings_ && !takes_part()) {             // waits for the next attempt
        std::this_thread::sleep_for(kNextMeeting);  // host 0 closes the last one first
        const HostDecision decision = decide_with(report(), options_.join_timeout);
        if (!follow(decision).starts) return code_of_others(decision);
        continue;
      }
      if (progress_) progress_->set_step(0);
      const LaunchOptions placed = placed_options();
      RankLauncher ranks(placed, streams_);
      ranks.run(attempt(), environment_);
      has_run_ = true;
      if (!progress_ || !goes_on(ranks)) return ranks.finish();
    }
  }

 private:
  [[nodiscard]] bool takes_part() const {
    return std::ranges::find(hosts_, options_.host_index) != hosts_.end();
  }

  // The ranks' hosts are numbered without gaps.
  [[nodiscard]] LaunchOptions placed_options() const {
    LaunchOptions placed = options_;
    if (!meetings_) return placed;
    placed.host_count = int(hosts_.size());
    placed.host_index = int(std::ranges::find(hosts_, options_.host_index) - hosts_.begin());
    return placed;
  }

  Attempt attempt() {
    RendezvousPoint point = open_rendezvous(options_, environment_);
    if (!progress_) return {.point = std::move(point), .job = ""};
    if (meetings_) {
      point.store.port = port_;
      point.listener = std::move(listener_);
    }
    Attempt result{std::move(point), job_, attempt_, &*progress_,
                   host_memory_ ? host_memory_->path() : ""};
    if (!meetings_ || options_.host_index != 0 || options_.min_hosts == 0) return result;
    if (meetings_->has_spares()) opens();  // at once: the ranks may end soon
    result.may_grow = [this] { return could_grow(); };
    return result;
  }

  // Whether more hosts could take part if the ranks started again.
  [[nodiscard]] bool could_grow() {
    if (!opens()) return false;
    std::vector<int> here = hosts_;
    for (const int host : meetings_->waiting())
      if (std::ranges::find(here, host) == here.end()) here.push_back(host);
    return progress_->step() > 0 && here.size() > hosts_.size() &&
           choose_hosts(here, rules()).size() > hosts_.size();
  }

  // Whether other hosts can come. The ranks do without them while another program has the port.
  bool opens() {
    try {
      meetings_->open();
      return true;
    } catch (const Error& error) {
      if (!std::exchange(warned_, true))
        log(LogLevel::kWarn, fmt::format("no other host can join the job now: {}", error.what()));
      return false;
    }
  }

  [[nodiscard]] HostRules rules() const {
    return {.least = options_.least_hosts(),
            .accepts = [this](int hosts) { return options_.accepts(hosts * options_.nproc); },
            .last = has_run_ ? hosts_ : std::vector<int>{}};
  }

  // The other hosts, which may have begun. The exit code, if they have ended without this one.
  std::optional<int> join() {
    for (int host = 0; host < options_.host_count; ++host) hosts_.push_back(host);
    const HostDecision decision = decide_with(report(), options_.join_timeout);
    const bool is_spare = decision.text.empty() && options_.min_hosts > 0;
    if (!decision.starts && !is_spare)
      fail(ErrorKind::kConfig, "start ranks with the other hosts: {}",
           decision.text.empty() ? "the job has ended" : decision.text);
    if (!follow(decision).starts) return code_of_others(decision);
    return std::nullopt;
  }

  // The job has ended, and this host had no ranks at the end.
  int code_of_others(const HostDecision& decision) {
    log(decision.failed ? LogLevel::kError : LogLevel::kInfo,
        fmt::format("the job has {} on the other hosts", decision.failed ? "failed" : "ended"));
    return decision.failed ? exit_code(ErrorKind::kPeer) : 0;
  }

  // Whether another attempt follows.
  bool goes_on(RankLauncher& ranks) {
    const HostReport mine = report(ranks);
    const bool waits = mine.may_restart || mine.succeeded || mine.paused;
    try {
      return follow(decide_with(mine, waits ? patience() : kTellOthers)).starts;
    } catch (const Error& error) {
      if (waits) log(LogLevel::kError, fmt::format("no restart: {}", error.what()));
      return false;
    }
  }

  const HostDecision& follow(const HostDecision& decision) {
    if (!decision.text.empty()) log(LogLevel::kWarn, decision.text);
    if (!decision.starts) return decision;
    job_ = decision.job;
    attempt_ = decision.attempt;
    restarts_ = decision.restarts;
    port_ = decision.port;
    hosts_.clear();
    for (const std::string& host : decision.hosts)
      hosts_.push_back(read_number<int>(host).value_or(-1));
    return decision;
  }

  // With replicas little is lost by going on without a host, which can take part again later.
  [[nodiscard]] std::chrono::milliseconds patience() const {
    const bool hurries = host_memory_ && options_.min_hosts > 0 && options_.host_index == 0;
    return hurries ? std::min(kHurry, options_.join_timeout) : options_.join_timeout;
  }

  // Of a launcher that has had no ranks in the last attempt.
  [[nodiscard]] HostReport report() const {
    return {.host = options_.host_index, .max_restarts = options_.max_restarts, .held = held()};
  }

  [[nodiscard]] std::vector<std::string> held() const {
    std::vector<std::string> parts;
    if (host_memory_ && meetings_ && options_.held_parts)
      for (HeldPart& part : options_.held_parts(host_memory_->path()))
        parts.push_back(pack_fact(std::move(part)));
    return parts;
  }

  HostReport report(RankLauncher& ranks) {
    HostReport mine{.host = options_.host_index,
                    .job = job_,
                    .attempt = attempt_,
                    .restarts = restarts_,
                    .max_restarts = options_.max_restarts,
                    .succeeded = ranks.succeeded(),
                    .may_restart = ranks.may_restart(),
                    .paused = ranks.paused(),
                    .failure = ranks.failure(),
                    .was_killed = ranks.culprit_was_killed(),
                    .from_outside = ranks.came_from_outside(),
                    .has_paused = ranks.has_paused(),
                    .step = progress_->step(),
                    .owns_directories = progress_->owns_directories()};
    try {
      if ((mine.may_restart || mine.paused) && mine.owns_directories)
        mine.saved = options_.saved_step();
      mine.replicated = progress_->replicated();
      mine.held = held();
    } catch (const Error& error) {
      log(LogLevel::kError, fmt::format("no restart: {}", error.what()));
      mine.may_restart = mine.paused = false;
    }
    return mine;
  }

  // Meanwhile a signal ends this process: there are no ranks to be told.
  HostDecision decide_with(const HostReport& mine, std::chrono::milliseconds patience) {
    const auto decides = [this](std::span<const HostReport> reports) {
      return decide(reports, policy_, new_job_, rules());
    };
    if (!meetings_) return decides(std::span(&mine, 1));
    const auto decides_and_listens = [&](std::span<const HostReport> reports) {
      HostDecision decision = decides(reports);
      if (!decision.starts) return decision;
      listener_ = listen_tcp_within(options_.ports, listening_host(options_), 0);
      decision.port = local_endpoint(listener_.get()).port;
      return decision;
    };
    const RunningTimeWatch time;  // the loop that looked at the clock has ended
    const SignalFd::Released released(streams_.signals, {SIGHUP, SIGINT, SIGTERM, SIGUSR1});
    return meetings_->agree(mine, hosts_, decides_and_listens, patience);
  }

  void log(LogLevel level, std::string_view message) {
    streams_.err.add(log_line(level, message));
    streams_.err.flush();
  }

  static constexpr std::chrono::milliseconds kTellOthers{5000};
  static constexpr std::chrono::milliseconds kHurry{1000};
  static constexpr std::chrono::milliseconds kNextMeeting{200};

  const LaunchOptions& options_;
  const Environment& environment_;
  LauncherStreams streams_;
  RestartPolicy policy_;
  // 128 random bits: its own.
  const std::string new_job_ = Secret::generate().hex().substr(0, 32);
  std::string job_ = new_job_;
  int attempt_ = 0;
  int restarts_ = 0;
  std::vector<int> hosts_;  // of the attempt, in order
  bool has_run_ = false;    // ranks
  bool warned_ = false;     // by opens()
  // Of the next attempt's store, with several hosts.
  int port_ = 0;
  Fd listener_;  // on host 0
  std::optional<JobProgress> progress_ = options_.max_restarts > 0
                                             ? std::optional<JobProgress>(std::in_place)
                                             : std::nullopt;
  std::optional<HostMemory> host_memory_ =
      options_.replica_dir.empty() ? std::nullopt
                                   : std::optional<HostMemory>(std::in_place, options_.replica_dir);
  // With several hosts and restarts.
  std::optional<HostMeetings> meetings_ =
      progress_ && options_.host_count > 1
          ? std::optional<HostMeetings>(std::in_place, options_, environment_,
                                        host_memory_ ? host_memory_->path() : "")
          : std::nullopt;
};

}  // namespace

int launch(const LaunchOptions& options, const Environment& environment) {
  return JobLauncher(options, environment).run();
}

}  // namespace gxp
