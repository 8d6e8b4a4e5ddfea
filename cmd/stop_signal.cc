#include "cmd/stop_signal.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr std::array kStopSignals = {SIGHUP, SIGINT, SIGTERM, SIGUSR1};

// A signal handler has no argument to keep its findings in.
std::atomic<int> caught{0};
std::atomic<bool> insisting{false};    // may_insist
std::atomic<int> request{0};           // the first SIGINT or SIGTERM
std::atomic<int64_t> requested_at{0};  // ns of CLOCK_MONOTONIC; 0: not yet
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

constexpr int64_t kSameRequest = 1'000'000'000;  // ns

int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

[[noreturn]] void end_at_once() {
  constexpr std::string_view kText =
      "gxp: error: stopped at once by a second signal; unsaved steps are lost\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(exit_code(ErrorKind::kPeer));
}

void keep(int signal) {
  int none = 0;
  if (signal == SIGINT || signal == SIGTERM) {
    int first = 0;
    const int64_t at = requested_at;
    if (request.compare_exchange_strong(first, signal))
      requested_at = now();
    else if (insisting && (signal != first || (at > 0 && now() - at > kSameRequest)))
      end_at_once();
  }
  caught.compare_exchange_strong(none, signal);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void catch_stop_signals(bool may_insist) {
  insisting = may_insist;
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
