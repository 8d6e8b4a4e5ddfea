// Ends a run that has failed while a device still computes.
#pragma once

#include <chrono>
#include <exception>
#include <span>

#include "lib/device/stream.h"

namespace gxp {

// A kernel that waits for a peer that is gone never ends, nor does what waits for the kernel: the
// destructors of streams and of a GPU's memory among them. A failed run waits this long.
inline constexpr std::chrono::seconds kSettleTimeout{3};

// Returns when all streams are done; what their works throw is forgotten. At the deadline it ends
// the process, without destructors and with the exit code of `cause`, which is written to stderr as
// main() would, after the stream's own words. Null streams have nothing to do; a null cause is
// unknown.
void settle_or_leave(std::span<Stream* const> streams, Deadline deadline,
                     const std::exception_ptr& cause);

}  // namespace gxp
