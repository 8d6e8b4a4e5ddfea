#include "lib/net/launch/launcher.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <optional>

#include "lib/base/cgroup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/running_time.h"
#include "lib/net/launch/child_process.h"
#include "lib/net/launch/exit_messages.h"
#include "lib/net/launch/job_outcome.h"
#include "lib/net/launch/rank_program.h"
#include "lib/net/launch/signals.h"
#include "lib/net/socket/output.h"
#include "lib/net/store/rank_list.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

// SIGPIPE is among them so that a reader who leaves is an error of write(); SIGHUP is not where it
// is ignored (nohup), by the ranks as well.
SignalFd take_signals_over() {
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == SIG_IGN) return SignalFd{SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGPIPE};
  return SignalFd{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGPIPE};
}

// How long a rank that has lost a peer is not yet named: the peer may end a little later.
constexpr auto kCausePatience = 1s;

// Bytes that a reader may be behind: of the log, then lines are dropped; of results, then the ranks
// that write them wait.
constexpr size_t kMostLog = size_t{4} << 20;
constexpr size_t kMostResults = size_t{64} << 20;

class RankLauncher {
 public:
  RankLauncher(const LaunchOptions& options, const Environment& environment)
      : options_(options), environment_(environment) {}

  int run() {
    start_ranks(open_rendezvous(options_, environment_));
    while (any_running()) serve();
    if (outcome_.killed_by_stop_signal()) await_own_signal();
    for (ChildProcess& rank : ranks_) finish_output(rank);
    announce();
    // Ranks that the launcher has ended only report that.
    if (steps_taken_ == 0 && !outcome_.stopped()) print_exit_messages();
    drain();
    return exit_code();
  }

 private:
  void start_ranks(const RendezvousPoint& point) {
    const int first = options_.host_index * options_.nproc;
    for (int local = 0; local < options_.nproc; ++local)
      ranks_.emplace_back(first + local, rank_program(options_, environment_, point, local,
                                                      signals_.former_mask()));
  }

  bool any_running() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return r.running(); });
  }

  void serve() {
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
    leave_unkillable();
  }

  // Waits for one of `entries`, a signal or a reader of our output, and serves the last two.
  void wait_for(std::vector<pollfd>& entries) { wait_for(entries, timeout_ms()); }
  void wait_for(std::vector<pollfd>& entries, int timeout) {
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

  // After a failure the steps of escalate() are due at their times, to a tenth of a second; so is
  // the end of stopped and of killed ranks.
  int timeout_ms() const {
    const bool any_due = std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
      return rank.stopped() || rank.was_sent(SIGKILL);
    });
    return outcome_.failed_at() || any_due ? 100 : -1;
  }

  // Until our readers have taken all output. With all ranks gone, one more signal is enough.
  void drain() {
    const int before = stop_count_;
    std::vector<pollfd> none;
    while ((out_.pending() || err_.pending()) && stop_count_ == before && stop_count_ < 2)
      wait_for(none);
  }

  void take_signals() {
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

  // timeout(1) sends its signal to its child and then to the process group, where the child is.
  void take_stop_request(int number) {
    const auto now = running_time();
    if (number == first_stop_.number && now - first_stop_.at < options_.same_signal_within) return;
    if (stop_count_ == 0) first_stop_ = {number, now};
    for (ChildProcess& rank : ranks_) rank.signal(stop_count_ > 0 ? SIGKILL : number);
    ++stop_count_;
  }

  // A signal to all processes of the job may reach the ranks first, before they catch it.
  void await_own_signal() {
    const Deadline deadline = Deadline::after(options_.same_signal_within);
    std::vector<pollfd> none;
    while (outcome_.killed_by_stop_signal() && !deadline.expired())
      wait_for(none, deadline.remaining_ms());
  }

  // What the results, which a full disk may have cut, make of the ranks' code.
  int exit_code() {
    const int code = outcome_.exit_code();
    if (code != 0 || out_.error() == 0) return code;
    log(LogLevel::kError, fmt::format("write the results: {}", system_text(out_.error())));
    drain();
    return gxp::exit_code(ErrorKind::kIo);
  }

  void reap() {
    take_signals();  // they may explain why a rank has ended
    for (ChildProcess& rank : ranks_) {
      const std::optional<int> status = rank.reap();
      if (!status) continue;
      finish_output(rank);
      outcome_.add(rank, *status);
    }
  }

  // Names the culprit, once: by its own message, if it has left one.
  void announce() {
    if (announced_ || !outcome_.failed_at() || outcome_.stopped()) return;
    announced_ = true;
    const bool killed = outcome_.culprit_was_killed();
    if (!killed) print_exit_messages();
    if (killed || !exit_messages_.has(outcome_.culprit()))
      log(LogLevel::kError, outcome_.describe(oom_kills() - oom_kills_before_));
  }

  void print_exit_messages() {
    const bool killed = outcome_.culprit_was_killed();
    for (const std::string& line : exit_messages_.take_new(outcome_.culprit(), killed))
      err_.add(line);
  }

  static uint64_t oom_kills() { return Cgroups().oom_kills().value_or(0); }

  // write_log() would wait for the reader.
  void log(LogLevel level, std::string_view message) { err_.add(log_line(level, message)); }

  // The steps that follow a failure.
  void escalate() {
    if (!outcome_.failed_at()) return;
    if (outcome_.killed_by_stop_signal() &&
        running_time() - *outcome_.failed_at() < options_.same_signal_within)
      return;
    const auto since = running_time() - *outcome_.failed_at();
    if (!outcome_.may_be_consequence() || since > kCausePatience) announce();
    if (since > options_.terminate_after) send_signal(SIGTERM, 1);
    if (since > options_.kill_after) send_signal(SIGKILL, 2);
  }

  // To all ranks that still run, if this step has not been taken yet.
  void send_signal(int number, int step) {
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

  // Where one rank of this host still runs, it loses the stopped ones itself, and fails.
  void end_stopped() {
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

  void leave_unkillable() {
    for (ChildProcess& rank : ranks_) {
      if (!rank.withstands_kill(options_.leave_after)) continue;
      finish_output(rank);
      log(LogLevel::kError,
          fmt::format(
              "rank {}, process {}, has not ended {:g} s after SIGKILL; leaving it. Is it "
              "frozen by a cgroup, or held by a disk, a file server, a driver or a debugger?",
              rank.rank(), rank.pid(),
              std::chrono::duration<double>(options_.leave_after).count()));
      err_.flush();  // after a second signal there is no other
      rank.leave();
      outcome_.add(rank, SIGKILL);  // a wait status: ended by that signal
    }
  }

  void forward(int rank, RankOutput& stream) {
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

  void close(int rank, RankOutput& stream) {
    stream.pipe.reset();
    write_line(rank, stream, stream.lines.rest());
  }

  // What a rank that has ended left in its pipes; a process that it started may hold them open.
  void finish_output(ChildProcess& rank) {
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

  void write_line(int rank, const RankOutput& stream, std::string line) {
    const bool is_log = stream.sink == STDERR_FILENO;
    if (line.empty() || (is_log && exit_messages_.take(rank, line))) return;
    const bool result = rank == 0 && !is_log;
    if (!result && line.back() != '\n') line += '\n';
    if (!result && !line.starts_with("gxp[rank")) line = fmt::format("[rank {}] {}", rank, line);
    output_of(stream).add(line);
    output_of(stream).flush();
  }

  Output& output_of(const RankOutput& stream) { return stream.sink == STDOUT_FILENO ? out_ : err_; }

  const LaunchOptions& options_;
  const Environment& environment_;
  SignalFd signals_ = take_signals_over();
  std::list<ChildProcess> ranks_;
  JobOutcome outcome_;
  const uint64_t oom_kills_before_ = oom_kills();
  ExitMessages exit_messages_;
  bool announced_ = false;
  int steps_taken_ = 0;  // of escalate()
  bool usr1_sent_ = false;
  bool hangup_sent_ = false;
  int stop_count_ = 0;  // requests by SIGINT or SIGTERM
  struct {
    int number = 0;
    std::chrono::nanoseconds at{};
  } first_stop_;
  Output out_{STDOUT_FILENO};
  Output err_{STDERR_FILENO, kMostLog};
};

}  // namespace

int launch(const LaunchOptions& options, const Environment& environment) {
  return RankLauncher(options, environment).run();
}

}  // namespace gxp
