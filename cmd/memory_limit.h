// Whether a run fits into its device, and what it keeps there where it need not.
#pragma once

#include <cstdint>
#include <string>

#include "cmd/run_network.h"
#include "lib/base/environment.h"
#include "lib/config/run_config.h"
#include "lib/train/keep_choice.h"

namespace gxp {

struct MemoryLimit {
  uint64_t bytes = 0;  // of a rank; 0: none
  std::string source;  // "train.device_memory_bytes", "free on cuda:0"
  bool on_gpu = false;
};

// Throws kConfig if the run's peak is above the limit: by how much, where, what is largest there,
// and which changes of settings would make it fit. Returns the peak; 0 without a limit.
uint64_t check_memory_limit(const RunConfig& config, const PlannedRanks& ranks,
                            const Environment& environment, const MemoryLimit& limit);

// For a run with train.keep = "auto" on a GPU with that limit; else nothing is kept. `peak`: what
// check_memory_limit() has returned.
KeepChoice choose_keep(const RunConfig& config, const PlannedRanks& ranks,
                       const Environment& environment, const MemoryLimit& limit, uint64_t peak);

}  // namespace gxp
