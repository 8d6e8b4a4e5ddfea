// What the ends of this host's ranks say about the job: the rank that failed first, the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/deadline.h"
#include "lib/net/launch/child_process.h"

namespace gxp {

class JobOutcome {
 public:
  // `rank` has ended with this wait status. An end by a signal that the launcher has sent, or with
  // 128 + its number, is no failure.
  void add(const ChildProcess& rank, int status);

  // When the first rank failed; nothing: none has.
  [[nodiscard]] std::optional<Deadline::Clock::time_point> failed_at() const { return failed_at_; }
  // The rank to blame: the first with the gravest failure.
  [[nodiscard]] int culprit() const { return culprit_; }
  [[nodiscard]] bool culprit_was_killed() const { return failure_ == Failure::kKilled; }
  // Whether the culprit's failure may still turn out to be the consequence of another rank's.
  [[nodiscard]] bool may_be_consequence() const { return failure_ == Failure::kLostPeer; }
  // "rank 3 was killed by signal 11 (SIGSEGV)"
  [[nodiscard]] std::string describe() const;
  // As launch() returns it.
  [[nodiscard]] int exit_code() const;

 private:
  enum class Failure : uint8_t { kNone, kLostPeer, kOwn, kKilled };  // the gravest last

  Failure failure_ = Failure::kNone;
  int culprit_ = -1;
  int status_ = 0;  // the culprit's
  std::optional<Deadline::Clock::time_point> failed_at_;
  bool killed_on_request_ = false;
  int stopped_code_ = 0;  // 128 + the number of a passed-on signal that ended a rank
};

}  // namespace gxp
