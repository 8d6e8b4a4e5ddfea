// The outcome of the job, from the exits of this host's ranks: the rank that failed first, and the
// exit code.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/net/launch/child_process.h"

namespace gxp {

class JobOutcome {
 public:
  // `rank` has ended with this wait status. It is no failure if the rank was ended by a signal that
  // the launcher has sent, or exited with 128 + the number of such a signal or of one that asks to
  // stop.
  void add(const ChildProcess& rank, int status);
  // The launcher itself has got this signal. A signal that killed a rank is not that rank's failure
  // either: it was sent to all processes of the job.
  void take_signal(int number) { own_signals_ |= uint64_t{1} << number; }

  // When the first rank failed, by running_time(); nothing: none has.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> failed_at() const { return failed_at_; }
  // Whether the culprit was killed by a signal that asks to stop, which the launcher has not got
  // yet.
  [[nodiscard]] bool killed_by_stop_signal() const;
  // Whether the only failures are ranks that the launcher itself has killed by a signal.
  [[nodiscard]] bool stopped() const;
  // Whether another attempt may do better: ranks were killed by signals other than those that ask to
  // stop, or lost a peer or a device, and none has another failure.
  [[nodiscard]] bool may_restart() const;
  // Whether somebody has killed the culprit by SIGKILL, and not the OOM killer.
  [[nodiscard]] bool came_from_outside(uint64_t oom_kills) const;
  // The rank to blame: the first with the gravest failure.
  [[nodiscard]] int culprit() const { return culprit_; }
  [[nodiscard]] bool culprit_was_killed() const { return failure_ == Failure::kKilled; }
  // Whether the culprit's failure may still turn out to be the consequence of another rank's.
  [[nodiscard]] bool may_be_consequence() const { return failure_ == Failure::kLostPeer; }
  // How the culprit ended: "was killed by signal 11 (SIGSEGV)". `oom_kills`: of processes here that
  // the OOM killer has ended for want of memory since the ranks started, Cgroups::oom_kills().
  [[nodiscard]] std::string describe_end(uint64_t oom_kills = 0) const;
  // The same, after "rank 3 ".
  [[nodiscard]] std::string describe(uint64_t oom_kills = 0) const;
  // As launch() returns it.
  [[nodiscard]] int exit_code() const;

 private:
  enum class Failure : uint8_t { kNone, kLostPeer, kOwn, kKilled };  // the gravest last

  Failure failure_ = Failure::kNone;
  int culprit_ = -1;
  int status_ = 0;  // the culprit's
  std::optional<std::chrono::nanoseconds> failed_at_;
  uint64_t own_signals_ = 0;  // a bit for each
  bool killed_on_request_ = false;
  bool has_own_failure_ = false;  // of any rank
  int stopped_code_ = 0;          // 128 + the number of a passed-on signal that ended a rank
};

}  // namespace gxp
