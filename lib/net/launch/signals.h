// Signals as readable events instead of interruptions.
#pragma once

#include <csignal>
#include <initializer_list>
#include <string>
#include <vector>

#include "lib/base/fd.h"

namespace gxp {

// While it lives, the given signals are blocked in the calling thread (and in threads started from
// it) and wait to be taken. The destructor drops those not taken and restores the former mask.
class SignalFd {
 public:
  explicit SignalFd(std::initializer_list<int> signals);
  ~SignalFd();
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;

  // For poll(): readable when a signal waits.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // The signals that have arrived; does not wait. Equal ones that arrived together count once.
  std::vector<int> take();
  // While it lives, these signals do again what they did before: most end the process.
  class Released {
   public:
    Released(const SignalFd& signals, std::initializer_list<int> which);
    ~Released();
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;

   private:
    sigset_t set_{};
  };
  // The mask before, for a child process.
  [[nodiscard]] const sigset_t& former_mask() const { return former_; }

 private:
  Fd fd_;
  sigset_t former_{};
};

// "SIGKILL"; "signal 40" for one without a name.
std::string signal_name(int signal);

}  // namespace gxp
