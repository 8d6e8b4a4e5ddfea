// State shared by a communicator and all communicators split from it. Used by communicator.cc only.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "lib/collective/call_queue.h"
#include "lib/collective/call_watch.h"
#include "lib/collective/communicator.h"

namespace gxp {

struct CommunicatorState {
  CommunicatorState(int rank, const FailureReporting& reporting_in);
  // After a call has failed on this rank: finds the cause, makes all other calls fail with it, and
  // returns it.
  Error end(const Error& error, const std::string& what, Engine& engine);
  // The cause, once a call has failed. Any thread, as check().
  [[nodiscard]] std::optional<Error> failed() const;
  void check() const;  // Communicator::check()

  FailureReporting reporting;
  CallQueue queue;  // its thread and the caller's use the engine alternately
  CallWatch watch;

 private:
  std::string explain(const Error& error, const std::string& what);

  mutable std::mutex mutex_;
  std::optional<Error> failure_;  // of the first call that failed; guarded by mutex_
  std::atomic<bool> has_failed_ = false;
};

}  // namespace gxp
