// Other ways to train the same run: every setting of who holds what and when it is computed, with
// as many rows in a step. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/config/run_config.h"

namespace gxp {

// All combinations that a run of `world_size` ranks can have of: strategies that differ, sizes of
// shard groups, micro-batches with gradient accumulation, recomputation, offload to memory or,
// where the run offloads to files, to those. Rules that take one setting to judge hold.
std::vector<RunConfig> run_variants(const RunConfig& config, int world_size);

// What a rank takes with each, and which of them none is both smaller and faster than.
struct RunCost {
  uint64_t bytes = 0;  // of the device
  double seconds = 0;  // of a step
};
// Those within the limit, by index, from the smallest on.
std::vector<size_t> best_of(const std::vector<RunCost>& costs, uint64_t limit_bytes);

}  // namespace gxp
