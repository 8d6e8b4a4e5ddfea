#include "lib/collective/communicator_state.h"

#include <fmt/format.h>

#include <chrono>

#include "lib/base/log.h"

namespace gxp {
namespace {

// A process that ends closes its connection to the store at once.
constexpr std::chrono::milliseconds kDeathNotice{500};

}  // namespace

CommunicatorState::CommunicatorState(int rank, const FailureReporting& reporting_in)
    : reporting(reporting_in),
      queue(rank),
      watch(rank, [this](const CallWatch::Watched& failed, const Error& error) {
        log_warn("{}, queued on the GPU: {}", failed.text, error.what());
        end(error, failed.text, *failed.engine);
      }) {}

// Why a call has failed, which the store learns before this rank closes its connections: so nobody
// takes that for the cause. `what`: what this rank has seen.
std::string CommunicatorState::explain(const Error& error, const std::string& what) {
  const auto [recorder, store] = reporting;
  if (store == nullptr) return what;
  if (error.kind() != ErrorKind::kPeer) {
    store->abort(store->rank(), what);
    return what;
  }
  // If a rank has died, that is the cause, and the store knows it soon.
  if (dynamic_cast<const LibraryFailure*>(&error) != nullptr &&
      !store->wait_verdict(Deadline::after(kDeathNotice)))
    store->abort(store->rank(), what);
  const int awaited = recorder->waits_for();
  const FailureVerdict verdict = store->inquire(awaited < 0 ? store->rank() : awaited, what);
  recorder->failed();
  return fmt::format("rank {}: {}", verdict.rank, verdict.reason);
}

Error CommunicatorState::end(const Error& error, const std::string& what, Engine& engine) {
  const std::string seen = fmt::format("{} at rank {}: {}", what, engine.rank(), error.what());
  const Error cause(error.kind(), explain(error, seen));
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = cause;
    has_failed_ = true;
  }
  engine.abort(cause.what());
  return cause;
}

std::optional<Error> CommunicatorState::failed() const {
  if (!has_failed_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failure_;
}

void CommunicatorState::check() const {
  if (const auto failure = failed()) throw Error(*failure);
  if (reporting.store == nullptr) return;
  if (const auto verdict = reporting.store->verdict())
    fail(ErrorKind::kPeer, "rank {}: {}", verdict->rank, verdict->reason);
}

}  // namespace gxp
