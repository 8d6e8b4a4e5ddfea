// Measures among the ranks of a communicator the constants of the cost model, and then what each
// algorithm takes with the segment that the model gives it: float sums in place, ordinary memory.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "lib/collective/tune/profile.h"

namespace gxp {

class Communicator;

using TimedBody = std::function<void()>;

// Seconds of each body: the median of 1 to 101 times, as many as take `budget_s`, each as long as
// its slowest rank takes after a barrier. They run alternately, so that a slow moment of the
// machine affects all. All ranks call it; the same on every rank.
std::vector<double> median_seconds(Communicator& comm, std::span<const TimedBody> bodies,
                                   double budget_s);

// The link classes of this communicator: its transport inside the host of rank 0, with as many
// ranks as are there, and between hosts if there are several. Buffers up to `most_bytes`, at least
// 64 KiB. All ranks call it, alone on their machines, and get the same. 5 to 20 s; memory:
// `most_bytes`, or a quarter of it for each rank if that is more. Errors: those of the
// communicator.
Profile calibrate(Communicator& comm, size_t most_bytes = size_t{64} << 20);

}  // namespace gxp
