// What to change so that a run fits into a memory. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/estimate/plan_search.h"

namespace gxp {

// Up to three ways (plan_search.h), those that change least first, through: the strategy,
// recomputation, the micro-batch with as many rows in a step, offload. Each leaves what is trained
// as it is, but for the order in which numbers are added. `peak_of` is asked for the peak of
// variants of `config`, with at most three micro-batches where more take no more memory. A changed setting's value is as in a run file: "\"zero3\"", "4".
std::vector<CostedPlan<RunConfig>> runs_that_fit(
    const RunConfig& config, int world_size, uint64_t limit_bytes,
    const std::function<uint64_t(const RunConfig&)>& peak_of);

}  // namespace gxp
