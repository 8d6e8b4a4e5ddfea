#include "cmd/stop_signal.h"

#include <array>
#include <atomic>
#include <csignal>

namespace gxp {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGUSR1};

// A signal handler has no argument to keep its finding in.
std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free);

void keep(int signal) {
  caught = signal;
  for (const int other : kStopSignals) std::signal(other, SIG_DFL);
}

}  // namespace

void catch_stop_signals() {
  for (const int signal : kStopSignals) {
    struct sigaction action {};
    action.sa_handler = keep;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

int stop_signal() { return caught; }

}  // namespace gxp
