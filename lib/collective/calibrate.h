// Measures the constants of the cost model among the ranks of a communicator.
#pragma once

#include <cstddef>
#include <functional>

#include "lib/collective/communicator.h"
#include "lib/collective/profile.h"

namespace gxp {

// Seconds of `body`: each trial starts with a barrier and takes as long as its slowest rank; the
// median of 5 to 101 trials. All ranks call it; the same on every rank.
double median_seconds(Communicator& comm, const std::function<void()>& body);

// The link classes of this communicator: its transport inside the host of rank 0, with as many
// ranks as are there, and between hosts if there are several. Buffers up to `most_bytes`, at least
// 64 KiB. All ranks call it, alone on their machines, and get the same. 2 to 6 s on shm, twice that
// on tcp; memory: `most_bytes`, or a quarter of it for each rank if that is more.
// Errors: those of the communicator.
Profile calibrate(Communicator& comm, size_t most_bytes = size_t{64} << 20);

}  // namespace gxp
