// Tells the other ranks why one of this host has ended, where that rank had not joined them and so
// cannot be missed by its connection. Without it they would blame whom they lose next: a neighbour
// that the launcher ends, or nobody until the time to join is over.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "lib/base/environment.h"

namespace gxp {

// `environment` is what the rank was started with, not rank 0's. Goes on until rank 0's store has
// taken it in; when told to stop, for `at_least` from the beginning. Nothing changes if the rank had
// joined, or rank 0 is gone.
void report_absence(const Environment& environment, const std::string& reason,
                    std::chrono::milliseconds at_least, const std::stop_token& stop) noexcept;

}  // namespace gxp
