// Ends what waits, from another thread, and says why.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {

//   Threads  any.
class StopSign {
 public:
  // The first reason is kept.
  void raise(std::string_view reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (!raised_) reason_ = reason;
    raised_ = true;
  }
  [[nodiscard]] bool raised() const { return raised_; }
  // Throws kPeer with the reason once it is raised.
  void check() const {
    if (!raised_) return;
    const std::lock_guard lock(mutex_);
    throw Error(ErrorKind::kPeer, reason_);
  }

 private:
  std::atomic<bool> raised_ = false;
  mutable std::mutex mutex_;
  std::string reason_;  // guarded by mutex_
};

}  // namespace gxp
