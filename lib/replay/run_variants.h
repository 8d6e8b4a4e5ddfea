// Other ways to train the same run: every setting of who holds what and when it is computed, with
// as many rows in a step. Pure.
#pragma once

#include <vector>

#include "lib/config/run_config.h"

namespace gxp {

// All combinations that a run of `world_size` ranks can have of: strategies that differ, sizes of
// shard groups, micro-batches with gradient accumulation, recomputation, offload to memory or,
// where the run offloads to files, to those. Rules that take one setting to judge hold.
std::vector<RunConfig> run_variants(const RunConfig& config, int world_size);

}  // namespace gxp
