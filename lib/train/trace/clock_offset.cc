#include "lib/train/trace/clock_offset.h"

#include <array>
#include <chrono>
#include <utility>

#include "lib/collective/communicator.h"

namespace gxp {
namespace {

constexpr int kExchanges = 16;  // the first ones open connections and wake threads

using TimeMessage = std::array<int64_t, 1>;

void tell_time(Communicator& communicator, int peer) {
  TimeMessage message{};
  for (int i = 0; i < kExchanges; ++i) {
    communicator.recv(peer, memory_of(message));
    message[0] = monotonic_ns();
    communicator.send(peer, memory_of(std::as_const(message)));
  }
}

// Rank 0 reads its clock between this rank's two readings: half of what passes is the most by which
// their middle can be wrong.
ClockOffset ask_time(Communicator& communicator) {
  ClockOffset best;
  TimeMessage message{};
  for (int i = 0; i < kExchanges; ++i) {
    const int64_t asked = monotonic_ns();
    communicator.send(0, memory_of(std::as_const(message)));
    communicator.recv(0, memory_of(message));
    const int64_t error = (monotonic_ns() - asked + 1) / 2;
    if (i == 0 || error < best.error_ns)
      best = {.at_ns = asked + error, .ns = message[0] - (asked + error), .error_ns = error};
  }
  return best;
}

}  // namespace

int64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

ClockOffset measure_clock_offset(Communicator& communicator) {
  if (communicator.rank() != 0) return ask_time(communicator);
  for (int peer = 1; peer < communicator.world_size(); ++peer) tell_time(communicator, peer);
  return {.at_ns = monotonic_ns()};
}

int64_t by_rank_zero(int64_t own_ns, const ClockOffset& first, const ClockOffset& last) {
  const double passed = double(own_ns - first.at_ns) / double(last.at_ns - first.at_ns);
  return own_ns + first.ns + int64_t(passed * double(last.ns - first.ns));
}

}  // namespace gxp
