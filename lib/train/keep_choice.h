// What a run with train.keep = "auto" keeps for its backward pass, by the memory that is free.
#pragma once

#include <cstdint>
#include <string>

#include "lib/config/run_config.h"

namespace gxp {

class Communicator;

// Never "all", which may change bits.
struct KeepChoice {
  bool norms = false;  // their outputs; else nothing
  std::string reason;  // for the log; "" on a CPU, where nothing was weighed
};

// A rank's planned peaks in bytes.
struct KeepPeaks {
  uint64_t with_norms = 0;
  uint64_t without = 0;
  uint64_t reserve = 0;  // DeviceTerms', on top of both
};

// Keeps the norms' outputs if the reserve and a sixteenth of the free memory are left then.
KeepChoice choose_keep(const KeepPeaks& peaks, uint64_t free_bytes);

// [collective] Sets train.keep, if it is "auto", to the least that a rank has chosen; rank 0 logs
// it. Ranks need not agree for the sake of their results, but a log line is then true of all.
void settle_keep(RunConfig& run, const KeepChoice& mine, Communicator& communicator);

}  // namespace gxp
