#include "lib/net/launch/signals.h"

#include <fmt/format.h>
#include <sys/signalfd.h>

#include <array>
#include <cstring>

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

std::string signal_name(int signal) {
  constexpr std::array<std::pair<int, const char*>, 16> kNames = {{{SIGHUP, "SIGHUP"},
                                                                   {SIGINT, "SIGINT"},
                                                                   {SIGQUIT, "SIGQUIT"},
                                                                   {SIGILL, "SIGILL"},
                                                                   {SIGABRT, "SIGABRT"},
                                                                   {SIGBUS, "SIGBUS"},
                                                                   {SIGFPE, "SIGFPE"},
                                                                   {SIGKILL, "SIGKILL"},
                                                                   {SIGUSR1, "SIGUSR1"},
                                                                   {SIGSEGV, "SIGSEGV"},
                                                                   {SIGPIPE, "SIGPIPE"},
                                                                   {SIGTERM, "SIGTERM"},
                                                                   {SIGSTOP, "SIGSTOP"},
                                                                   {SIGTSTP, "SIGTSTP"},
                                                                   {SIGXCPU, "SIGXCPU"},
                                                                   {SIGXFSZ, "SIGXFSZ"}}};
  for (const auto& [number, name] : kNames) {
    if (number == signal) return name;
  }
  return fmt::format("signal {}", signal);
}

}  // namespace gxp
