#include "lib/net/launch/rank_launcher.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "lib/base/cgroup.h"
#include "lib/base/error.h"
#include "lib/base/running_time.h"
#include "lib/base/thread.h"
#include "lib/net/launch/absence_report.h"
#include "lib/net/store/rank_list.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

// How long a rank that has lost a peer is not yet named: the peer may end a little later.
constexpr auto kCausePatience = 1s;

// Bytes of results that a reader may be behind; then the ranks that write them wait.
constexpr size_t kMostResults = size_t{64} << 20;

uint64_t oom_kills() { return Cgroups().oom_kills().value_or(0); }

}  // namespace

// SIGPIPE is among them so that a reader who leaves is an error of write(); SIGHUP is not where it
// is ignored (nohup), by the ranks as well.
SignalFd take_signals_over() {
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == SIG_IGN) return SignalFd{SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGPIPE};
  return SignalFd{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGPIPE};
}

RankLauncher::RankLauncher(const LaunchOptions& options, LauncherStreams& streams)
    : options_(options),
      signals_(streams.signals),
      oom_kills_before_(oom_kills()),
      out_(streams.out),
      err_(streams.err) {}

void RankLauncher::run(const Attempt& attempt, const Environment& environment) {
  start_ranks(attempt, environment);
  may_grow_ = attempt.may_grow;
  // ends: when the last rank does; escalate() ends those that are late after a failure
  while (any_running()) serve();
  end_report();
  if (outcome_.killed_by_stop_signal()) await_own_signal();
  for (ChildProcess& rank : ranks_) finish_output(rank);
  announce();
  // Ranks that the launcher has ended only report that.
  if (steps_taken_ == 0 && !outcome_.stopped()) print_exit_messages();
  err_.flush();
}

bool RankLauncher::may_restart() {
  take_signals();
  return outcome_.may_restart() && !asked_to_stop() && !has_left_rank_ && holds_results_;
}

bool RankLauncher::paused() {
  take_signals();
  return outcome_.exit_code() == 128 + SIGUSR1 && !asked_to_stop() && !has_left_rank_ &&
         holds_results_;
}

// A rank that has lost another is not to blame.
std::string RankLauncher::failure() const {
  if (!outcome_.failed_at()) return "";
  const auto blamed = exit_messages_.blamed_by(outcome_.culprit());
  if (outcome_.may_be_consequence() && blamed)
    return fmt::format("rank {} lost rank {}", outcome_.culprit(), *blamed);
  return outcome_.describe();
}

bool RankLauncher::came_from_outside() const {
  return outcome_.came_from_outside(oom_kills() - oom_kills_before_);
}

int RankLauncher::finish() {
  pass_results();
  drain();
  return exit_code();
}

void RankLauncher::start_ranks(const Attempt& attempt, const Environment& environment) {
  const int first = options_.host_index * options_.nproc;
  for (int local = 0; local < options_.nproc; ++local) {
    const auto program =
        rank_program(options_, environment, attempt, local, signals_.former_mask());
    environments_.push_back(program.environment);
    ranks_.emplace_back(first + local, program);
  }
}

bool RankLauncher::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return r.running(); });
}

void RankLauncher::serve() {
  std::vector<pollfd> ready;
  std::vector<std::pair<int, RankOutput*>> streams;
  for (ChildProcess& rank : ranks_) {
    for (RankOutput* stream : {&rank.out, &rank.err}) {
      // Also where the reader of our own output is behind: a rank that waited to write a line
      // would be late for the others.
      const bool full = output_of(*stream).held() > kMostResults;
      ready.push_back({full ? -1 : stream->pipe.get(), POLLIN, 0});  // poll() skips -1
      streams.emplace_back(rank.rank(), stream);
    }
  }
  wait_for(ready);
  reap();
  for (size_t i = 0; i < streams.size(); ++i) {
    const bool open = streams[i].second->pipe.valid();  // not if its rank has just been reaped
    if (open && ready[i].revents != 0) forward(streams[i].first, *streams[i].second);
  }
  escalate();
  end_stopped();
  pause_to_grow();
  leave_unkillable();
}

void RankLauncher::wait_for(std::vector<pollfd>& entries, int timeout) {
  const size_t own = entries.size();
  entries.push_back({signals_.fd(), POLLIN, 0});
  for (const Output* output : {&out_, &err_}) entries.push_back({output->fd(), POLLOUT, 0});
  const int count = ::poll(entries.data(), entries.size(), timeout);
  if (count < 0 && errno != EINTR) check_sys(count, "wait for the ranks");
  look_at_running_time();  // a pause of all processes makes no rank late
  entries.resize(own);
  take_signals();
  out_.flush();
  err_.flush();
}

int RankLauncher::timeout_ms() const {
  const bool any_due = std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
    return rank.stopped() || rank.was_sent(SIGKILL);
  });
  if (outcome_.failed_at() || any_due) return 100;
  return may_grow_ && !has_paused_ ? 1000 : -1;
}

void RankLauncher::drain() {
  const int before = stop_count_;
  std::vector<pollfd> none;
  while ((out_.pending() || err_.pending()) && stop_count_ == before && stop_count_ < 2)
    wait_for(none);
}

void RankLauncher::take_signals() {
  for (const int number : signals_.take()) {
    outcome_.take_signal(number);
    bool& sent = number == SIGUSR1 ? usr1_sent_ : hangup_sent_;
    if ((number == SIGUSR1 || number == SIGHUP) && !sent) {
      sent = true;
      for (ChildProcess& rank : ranks_) rank.signal(number);
    } else if (number == SIGINT || number == SIGTERM) {
      take_stop_request(number);
    }
  }
}

void RankLauncher::take_stop_request(int number) {
  const auto now = running_time();
  if (number == first_stop_.number && now - first_stop_.at < options_.same_signal_within) return;
  if (stop_count_ == 0) first_stop_ = {number, now};
  for (ChildProcess& rank : ranks_) rank.signal(stop_count_ > 0 ? SIGKILL : number);
  ++stop_count_;
}

void RankLauncher::await_own_signal() {
  const Deadline deadline = Deadline::after(options_.same_signal_within);
  std::vector<pollfd> none;
  while (outcome_.killed_by_stop_signal() && !deadline.expired())
    wait_for(none, deadline.remaining_ms());
}

int RankLauncher::exit_code() {
  const int code = outcome_.exit_code();
  if (code != 0 || out_.error() == 0) return code;
  log(LogLevel::kError, fmt::format("write the results: {}", system_text(out_.error())));
  drain();
  return gxp::exit_code(ErrorKind::kIo);
}

void RankLauncher::reap() {
  take_signals();  // they may explain why a rank has ended
  for (ChildProcess& rank : ranks_) {
    const std::optional<int> status = rank.reap();
    if (!status) continue;
    finish_output(rank);
    outcome_.add(rank, *status);
  }
  report_culprit();
}

void RankLauncher::report_culprit() {
  const bool stops = outcome_.killed_by_stop_signal() || outcome_.stopped();
  const int culprit = outcome_.culprit();
  if (report_.joinable() || !outcome_.failed_at() || outcome_.may_be_consequence() || stops ||
      culprit == 0)
    return;
  std::string reason = outcome_.culprit_was_killed() ? "" : exit_messages_.cause_of(culprit);
  if (reason.empty()) reason = "it " + outcome_.describe_end(oom_kills() - oom_kills_before_);
  // Where no rank is left to lose the others, there is no other end to wait for.
  const auto at_least = options_.nproc > 1 ? 0ms : 200ms;
  const Environment& environment =
      environments_[size_t(culprit - options_.host_index * options_.nproc)];
  report_ = start_thread("gxp-report",
                         [this, reason, at_least, &environment](const std::stop_token& stop) {
                           report_absence(environment, reason, at_least, stop);
                           reported_ = true;
                         });
}

// This thread's look at the clock is what lets the other's time pass.
void RankLauncher::end_report() {
  if (!report_.joinable()) return;
  report_.request_stop();
  std::vector<pollfd> none;
  while (!reported_) wait_for(none, 5);  // ends: report_absence() does, soon after it is told to
  report_.join();
}

void RankLauncher::announce() {
  if (announced_ || !outcome_.failed_at() || outcome_.stopped()) return;
  announced_ = true;
  const bool killed = outcome_.culprit_was_killed();
  if (!killed) print_exit_messages();
  if (killed || !exit_messages_.has(outcome_.culprit()))
    log(LogLevel::kError, outcome_.describe(oom_kills() - oom_kills_before_));
}

void RankLauncher::print_exit_messages() {
  const bool killed = outcome_.culprit_was_killed();
  for (const std::string& line : exit_messages_.take_new(outcome_.culprit(), killed))
    err_.add(line);
}

// The ranks of the other hosts stop with these.
void RankLauncher::pause_to_grow() {
  const bool ends = outcome_.failed_at() || asked_to_stop();
  if (!may_grow_ || has_paused_ || ends || !may_grow_()) return;
  has_paused_ = true;
  for (ChildProcess& rank : ranks_) rank.signal(SIGUSR1);
}

void RankLauncher::escalate() {
  if (!outcome_.failed_at()) return;
  if (outcome_.killed_by_stop_signal() &&
      running_time() - *outcome_.failed_at() < options_.same_signal_within)
    return;
  const auto since = running_time() - *outcome_.failed_at();
  if (!outcome_.may_be_consequence() || since > kCausePatience) announce();
  if (since > options_.terminate_after) send_signal(SIGTERM, 1);
  if (since > options_.kill_after) send_signal(SIGKILL, 2);
}

void RankLauncher::send_signal(int number, int step) {
  if (steps_taken_ >= step) return;
  if (steps_taken_ == 0) print_exit_messages();
  steps_taken_ = step;
  std::vector<int> late;
  for (ChildProcess& rank : ranks_) {
    if (rank.running()) late.push_back(rank.rank());
    rank.signal(number);
  }
  if (late.empty()) return;
  log(LogLevel::kWarn,
      fmt::format("{} not ended by {}; sending {}",
                  to_text(late) + (late.size() == 1 ? " has" : " have"),
                  late.size() == 1 ? "itself" : "themselves", signal_name(number)));
}

void RankLauncher::end_stopped() {
  if (options_.host_count == 1) return;
  const auto before = running_time() - options_.stopped_after;
  const bool all = std::all_of(ranks_.begin(), ranks_.end(), [before](const auto& rank) {
    return !rank.running() || (rank.stopped() && rank.stopped()->since <= before);
  });
  for (ChildProcess& rank : ranks_) {
    if (!all || !rank.running() || rank.was_sent(SIGKILL)) continue;
    log(LogLevel::kError,
        fmt::format("rank {} was stopped ({}) and not continued within {:g} s; sending "
                    "SIGKILL",
                    rank.rank(), signal_name(rank.stopped()->signal),
                    std::chrono::duration<double>(options_.stopped_after).count()));
    rank.signal(SIGKILL);
  }
}

void RankLauncher::leave_unkillable() {
  for (ChildProcess& rank : ranks_) {
    if (!rank.withstands_kill(options_.leave_after)) continue;
    finish_output(rank);
    log(LogLevel::kError,
        fmt::format("rank {}, process {}, has not ended {:g} s after SIGKILL; leaving it. Is it "
                    "frozen by a cgroup, or held by a disk, a file server, a driver or a debugger?",
                    rank.rank(), rank.pid(),
                    std::chrono::duration<double>(options_.leave_after).count()));
    err_.flush();  // after a second signal there is no other
    rank.leave();
    has_left_rank_ = true;
    outcome_.add(rank, SIGKILL);  // a wait status: ended by that signal
  }
}

void RankLauncher::forward(int rank, RankOutput& stream) {
  std::array<char, 16384> chunk;
  const ssize_t count = ::read(stream.pipe.get(), chunk.data(), chunk.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    stream.lines.add({chunk.data(), size_t(count)});
    while (const auto line = stream.lines.next()) write_line(rank, stream, *line);
    return;
  }
  close(rank, stream);
}

void RankLauncher::close(int rank, RankOutput& stream) {
  stream.pipe.reset();
  write_line(rank, stream, stream.lines.rest());
}

void RankLauncher::finish_output(ChildProcess& rank) {
  constexpr int kMostPieces = 64;  // of forward(): 1 MiB, the most that a pipe may hold
  for (RankOutput* stream : {&rank.out, &rank.err}) {
    for (int i = 0; i < kMostPieces && stream->pipe.valid(); ++i) {
      pollfd entry{stream->pipe.get(), POLLIN, 0};
      if (::poll(&entry, 1, 0) <= 0) break;
      forward(rank.rank(), *stream);
    }
    if (stream->pipe.valid()) close(rank.rank(), *stream);
  }
}

void RankLauncher::write_line(int rank, const RankOutput& stream, std::string line) {
  const bool is_log = stream.sink == STDERR_FILENO;
  if (line.empty() || (is_log && exit_messages_.take(rank, line))) return;
  const bool result = rank == 0 && !is_log;
  if (!result && line.back() != '\n') line += '\n';
  if (!result && !line.starts_with("gxp[rank")) line = fmt::format("[rank {}] {}", rank, line);
  if (result && holds_results_) return hold(line);
  output_of(stream).add(line);
  output_of(stream).flush();
}

void RankLauncher::hold(const std::string& line) {
  results_ += line;
  if (results_.size() > kMostResults) pass_results();
}

void RankLauncher::pass_results() {
  holds_results_ = false;
  if (!results_.empty()) out_.add(results_);
  results_.clear();
  out_.flush();
}

// write_log() would wait for the reader.
void RankLauncher::log(LogLevel level, std::string_view message) {
  err_.add(log_line(level, message));
}

}  // namespace gxp
