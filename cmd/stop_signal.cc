#include "cmd/stop_signal.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr std::array kStopSignals = {SIGHUP, SIGINT, SIGTERM, SIGUSR1};

// A signal handler has no argument to keep its findings in.
std::atomic<int> caught{0};
std::atomic<bool> insisted{false};  // SIGINT or SIGTERM has come
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

[[noreturn]] void end_at_once() {
  constexpr std::string_view kText =
      "gxp: error: end at once: a second signal came; what was not saved is lost\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(exit_code(ErrorKind::kPeer));
}

void keep(int signal) {
  const bool insists = signal == SIGINT || signal == SIGTERM;
  if (insists && insisted.exchange(true)) end_at_once();
  int none = 0;
  caught.compare_exchange_strong(none, signal);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void catch_stop_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int signal : kStopSignals) {
    if (signal == SIGHUP && is_ignored(signal)) continue;
    struct sigaction action {};
    action.sa_handler = keep;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

int stop_signal() { return caught; }

}  // namespace gxp
