// Waiting in a library for other ranks; and what ends it, from another thread, and says why.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/transport/backoff.h"

namespace gxp {

//   Threads  any.
class AbortFlag {
 public:
  // The first reason is kept.
  void set(std::string_view reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (!set_) reason_ = reason;
    set_ = true;
  }
  [[nodiscard]] bool is_set() const { return set_; }
  // Throws kPeer with the reason once it is set.
  void check() const {
    if (!set_) return;
    const std::lock_guard lock(mutex_);
    throw Error(ErrorKind::kPeer, reason_);
  }

 private:
  std::atomic<bool> set_ = false;
  mutable std::mutex mutex_;
  std::string reason_;  // guarded by mutex_
};

// Returns when done(): tests it until then, since `library` makes progress only while it is called,
// and other ranks may need this core. Throws kPeer at the deadline and once the flag is set.
template <class Done>
void wait_for_ranks(std::string_view library, const AbortFlag& aborted, const Done& done,
                    Deadline deadline) {
  Backoff backoff(false, std::chrono::hours(1));
  while (!done()) {
    aborted.check();
    if (deadline.expired())
      fail(
          ErrorKind::kPeer,
          "wait for the other ranks in {0}: not done after {1:g} s; {0} does not say which of them "
          "is late, lost or called something else",
          library, deadline.seconds());
    if (!backoff.keep_awake()) yield_cpu();
  }
}

}  // namespace gxp
