// Ends the waits of other threads, and says why.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "lib/base/error.h"

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

}  // namespace gxp
