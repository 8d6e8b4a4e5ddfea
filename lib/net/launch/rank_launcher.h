// This host's ranks in one attempt, from their start until all have ended: their output, the signals
// and what follows a failure, as launcher.h says.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/base/environment.h"
#include "lib/base/log.h"
#include "lib/net/launch/child_process.h"
#include "lib/net/launch/exit_messages.h"
#include "lib/net/launch/job_outcome.h"
#include "lib/net/launch/launcher.h"
#include "lib/net/launch/rank_program.h"
#include "lib/net/launch/signals.h"
#include "lib/net/socket/output.h"

namespace gxp {

// SIGINT, SIGTERM, SIGUSR1, SIGCHLD and SIGPIPE; SIGHUP too, unless it is ignored.
SignalFd take_signals_over();

// What outlives an attempt.
struct LauncherStreams {
  // Bytes of the log that a reader may be behind; then lines are dropped.
  static constexpr size_t kMostLog = size_t{4} << 20;

  SignalFd signals = take_signals_over();
  Output out{STDOUT_FILENO};
  Output err{STDERR_FILENO, kMostLog};
};

class RankLauncher {
 public:
  RankLauncher(const LaunchOptions& options, LauncherStreams& streams);
  ~RankLauncher() { end_report(); }
  RankLauncher(const RankLauncher&) = delete;
  RankLauncher& operator=(const RankLauncher&) = delete;

  // Starts them and returns when all have ended. Call once.
  void run(const Attempt& attempt, const Environment& environment);
  // After run(): whether they may be started again, as far as this attempt tells.
  bool may_restart();
  [[nodiscard]] bool succeeded() const { return outcome_.exit_code() == 0; }
  // The rest: if they may.
  [[nodiscard]] std::string failure() const;
  [[nodiscard]] bool culprit_was_killed() const { return outcome_.culprit_was_killed(); }
  [[nodiscard]] bool came_from_outside() const;
  // After run(): whether this launcher has asked the ranks to save and end, to start again with more
  // hosts; and whether they have ended that way, and nobody else has asked for it.
  [[nodiscard]] bool has_paused() const { return has_paused_; }
  bool paused();

  // After the last attempt: when our readers have all output. Returns the job's exit code.
  int finish();

 private:
  void start_ranks(const Attempt& attempt, const Environment& environment);

  bool any_running() const;

  // A signal has asked this launcher to.
  [[nodiscard]] bool asked_to_stop() const { return usr1_sent_ || hangup_sent_ || stop_count_ > 0; }

  void serve();

  // Waits for one of `entries`, a signal or a reader of our output, and serves the last two.
  void wait_for(std::vector<pollfd>& entries) { wait_for(entries, timeout_ms()); }
  void wait_for(std::vector<pollfd>& entries, int timeout);

  // After a failure the steps of escalate() are due at their times, to a tenth of a second; so is
  // the end of stopped and of killed ranks.
  int timeout_ms() const;

  // Until our readers have taken all output. With all ranks gone, one more signal is enough.
  void drain();

  void take_signals();

  // timeout(1) sends its signal to its child and then to the process group, where the child is.
  void take_stop_request(int number);

  // A signal to all processes of the job may reach the ranks first, before they catch it.
  void await_own_signal();

  // What the results, which a full disk may have cut, make of the ranks' code.
  int exit_code();

  void reap();

  // Of the first rank that has failed by itself.
  void report_culprit();
  void end_report();

  // Names the culprit, once: by its own message, if it has left one.
  void announce();

  void print_exit_messages();

  void log(LogLevel level, std::string_view message);

  // The steps that follow a failure.
  void escalate();

  // To all ranks that still run, if this step has not been taken yet.
  void send_signal(int number, int step);

  // Where one rank of this host still runs, it loses the stopped ones itself, and fails.
  void end_stopped();

  // Asks Attempt::may_grow.
  void pause_to_grow();

  void leave_unkillable();

  void forward(int rank, RankOutput& stream);

  void close(int rank, RankOutput& stream);

  // What a rank that has ended left in its pipes; a process that it started may hold them open.
  void finish_output(ChildProcess& rank);

  void write_line(int rank, const RankOutput& stream, std::string line);

  // The results of an attempt that fails are the next one's.
  void hold(const std::string& line);

  void pass_results();

  Output& output_of(const RankOutput& stream) { return stream.sink == STDOUT_FILENO ? out_ : err_; }

  const LaunchOptions& options_;
  SignalFd& signals_;
  std::list<ChildProcess> ranks_;
  JobOutcome outcome_;
  const uint64_t oom_kills_before_;
  ExitMessages exit_messages_;
  bool announced_ = false;
  int steps_taken_ = 0;  // of escalate()
  bool usr1_sent_ = false;
  std::function<bool()> may_grow_;
  bool has_paused_ = false;
  bool hangup_sent_ = false;
  int stop_count_ = 0;  // requests by SIGINT or SIGTERM
  struct {
    int number = 0;
    std::chrono::nanoseconds at{};
  } first_stop_;
  bool has_left_rank_ = false;
  bool holds_results_ = options_.max_restarts > 0;
  std::string results_;  // held back
  Output& out_;
  Output& err_;
  std::vector<Environment> environments_;  // of the ranks here
  std::atomic<bool> reported_ = false;
  std::jthread report_;  // report_absence(), which then sets reported_
};

}  // namespace gxp
