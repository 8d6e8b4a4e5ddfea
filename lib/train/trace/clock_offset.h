// Clocks of the ranks, compared: hosts' monotonic clocks begin at different times and drift.
#pragma once

#include <cstdint>

namespace gxp {

class Communicator;

// This rank's monotonic clock in ns (std::chrono::steady_clock).
int64_t monotonic_ns();

// What to add to this rank's monotonic clock for rank 0's, measured at one time.
struct ClockOffset {
  int64_t at_ns = 0;  // by this rank's clock
  int64_t ns = 0;
  int64_t error_ns = 0;  // at most
};

// [collective] Rank 0 tells each rank in turn its time, 16 times; the exchange that took least
// counts. Source: Cristian, Distributed Computing 3, 1989. Errors: the communicator's.
ClockOffset measure_clock_offset(Communicator& communicator);

// `own_ns` by rank 0's clock; the offset is taken to have changed evenly from `first` to `last`.
int64_t by_rank_zero(int64_t own_ns, const ClockOffset& first, const ClockOffset& last);

}  // namespace gxp
