#include "lib/net/launch/signals.h"

#include <fmt/format.h>
#include <sys/signalfd.h>

#include "lib/base/error.h"

namespace gxp {

SignalFd::SignalFd(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, &former_);
  fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (fd_.valid()) return;
  pthread_sigmask(SIG_SETMASK, &former_, nullptr);
  check_sys(-1, "make a signal descriptor");
}

SignalFd::~SignalFd() {
  take();
  pthread_sigmask(SIG_SETMASK, &former_, nullptr);
}

std::vector<int> SignalFd::take() {
  std::vector<int> signals;
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == ssize_t(sizeof info))
    signals.push_back(int(info.ssi_signo));
  return signals;
}

SignalFd::Released::Released(const SignalFd& signals, std::initializer_list<int> which) {
  sigemptyset(&set_);
  for (const int signal : which)
    if (sigismember(&signals.former_, signal) == 0) sigaddset(&set_, signal);
  pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
}

SignalFd::Released::~Released() { pthread_sigmask(SIG_BLOCK, &set_, nullptr); }

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

}  // namespace gxp
