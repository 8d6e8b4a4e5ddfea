// Whether a run fits into its device.
#pragma once

#include <cstdint>
#include <string>

#include "cmd/run_network.h"
#include "lib/base/environment.h"
#include "lib/config/run_config.h"

namespace gxp {

struct MemoryLimit {
  uint64_t bytes = 0;  // of a rank; 0: none
  std::string source;  // "train.device_memory_bytes", "free on cuda:0"
  bool on_gpu = false;
};

// Throws kConfig if the run's peak is above the limit: by how much, where, what is largest there,
// and which changes of settings would make it fit.
void check_memory_limit(const RunConfig& config, const PlannedRanks& ranks,
                        const Environment& environment, const MemoryLimit& limit);

}  // namespace gxp
