// Other ways to train a run: what to change so that it fits into a memory, all settings of who
// holds what and when it is computed, and what a run may have more of until its memory is full.
// Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/replay/plan_search.h"
#include "lib/replay/quantity.h"

namespace gxp {

// Up to three ways (plan_search.h), those that change least first, through: the strategy,
// recomputation, the micro-batch with as many rows in a step, offload. None changes the training,
// except for the order in which numbers are added. `peak_of` is asked for the peak of variants of
// `config`, with at most three micro-batches where more take no more memory. A changed setting's
// value is as in a run file: "\"zero3\"", "4".
std::vector<CostedPlan<RunConfig>> runs_that_fit(
    const RunConfig& config, int world_size, uint64_t limit_bytes,
    const std::function<uint64_t(const RunConfig&)>& peak_of);

// All combinations that a run of `world_size` ranks can have, with as many rows in a step:
// strategies that differ, sizes of shard groups, micro-batches with gradient accumulation,
// recomputation, offload to memory or, where the run offloads to files, to those. Rules that take
// one setting to judge hold.
std::vector<RunConfig> run_variants(const RunConfig& config, int world_size);

// batch, seq and layers.
std::span<const Quantity<RunConfig>> run_quantities();

}  // namespace gxp
