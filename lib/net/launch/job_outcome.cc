#include "lib/net/launch/job_outcome.h"

#include <sys/wait.h>

#include "lib/base/bytes.h"
#include "lib/base/cgroup.h"
#include "lib/base/error.h"
#include "lib/base/running_time.h"
#include "lib/net/launch/signals.h"

namespace gxp {
namespace {

bool asks_to_stop(int signal) {
  return signal == SIGHUP || signal == SIGINT || signal == SIGTERM || signal == SIGUSR1;
}

}  // namespace

void JobOutcome::add(const ChildProcess& rank, int status) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int code = signal == 0 ? WEXITSTATUS(status) : 0;
  Failure failure = Failure::kNone;
  if (signal == SIGKILL && rank.was_sent(SIGKILL)) {
    killed_on_request_ = true;
  } else if (signal != 0 && rank.was_sent(signal)) {
    stopped_code_ = 128 + signal;
  } else if (signal != 0) {
    failure = Failure::kKilled;
  } else if (code > 128 && (rank.was_sent(code - 128) || asks_to_stop(code - 128))) {
    stopped_code_ = code;
  } else if (code != 0) {
    failure = code == gxp::exit_code(ErrorKind::kPeer) ? Failure::kLostPeer : Failure::kOwn;
  }
  has_own_failure_ |= failure == Failure::kOwn;
  if (failure > Failure::kNone && !failed_at_) failed_at_ = running_time();
  if (failure <= failure_) return;
  failure_ = failure;
  culprit_ = rank.rank();
  status_ = status;
}

bool JobOutcome::killed_by_stop_signal() const {
  return culprit_was_killed() && asks_to_stop(WTERMSIG(status_)) && !stopped();
}

bool JobOutcome::stopped() const {
  return culprit_was_killed() && (own_signals_ >> WTERMSIG(status_) & 1) != 0;
}

bool JobOutcome::may_restart() const {
  if (failure_ == Failure::kNone || has_own_failure_ || stopped()) return false;
  return !culprit_was_killed() || !asks_to_stop(WTERMSIG(status_));
}

bool JobOutcome::came_from_outside(uint64_t oom_kills) const {
  return culprit_was_killed() && WTERMSIG(status_) == SIGKILL && oom_kills == 0;
}

std::string JobOutcome::describe_end(uint64_t oom_kills) const {
  if (!culprit_was_killed()) return fmt::format("exited with code {}", WEXITSTATUS(status_));
  const int signal = WTERMSIG(status_);
  std::string text = fmt::format("was killed by signal {} ({})", signal, signal_name(signal));
  if (signal != SIGKILL || oom_kills == 0) return text;
  const auto limit = Cgroups().memory_bytes();
  return text + fmt::format(
                    ", as the OOM killer does: oom_kill has risen by {}{}; let fewer ranks share "
                    "the memory, or make the run smaller",
                    oom_kills,
                    limit ? fmt::format(", and the cgroup allows {}", format_bytes(*limit)) : "");
}

std::string JobOutcome::describe(uint64_t oom_kills) const {
  return fmt::format("rank {} {}", culprit_, describe_end(oom_kills));
}

int JobOutcome::exit_code() const {
  if (stopped()) return 128 + WTERMSIG(status_);
  if (failure_ == Failure::kNone && !killed_on_request_) return stopped_code_;
  if (failure_ == Failure::kNone || culprit_was_killed()) return gxp::exit_code(ErrorKind::kPeer);
  return WEXITSTATUS(status_);
}

}  // namespace gxp
