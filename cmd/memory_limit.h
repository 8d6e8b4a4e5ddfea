// Whether a run fits into train.device_memory_bytes.
#pragma once

#include "cmd/run_network.h"
#include "lib/base/environment.h"
#include "lib/config/run_config.h"

namespace gxp {

// Throws kConfig if the run's peak is above the limit: by how much, where, and which changes of
// settings would make it fit.
void check_memory_limit(const RunConfig& config, const PlannedRanks& ranks,
                        const Environment& environment);

}  // namespace gxp
