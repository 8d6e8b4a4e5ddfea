// The time of a step's operations on this machine, for plans of runs of any size and strategy.
#pragma once

#include <vector>

#include "lib/config/run_config.h"
#include "lib/replay/step_time.h"

namespace gxp {

// Trains the first blocks of the run's model on random tokens, in `ranks_here` threads at once that
// do not talk to each other but share this machine as the ranks of a host do. A row is one document:
// several, which are kept apart, would leave attention less to do. Returns the times of
// each kind of operation in the steps after the first. Cost: half a second or more, and the memory
// of three blocks, for each rank. Errors: those of a run.
std::vector<OpCost> measure_ops(const RunConfig& config, int ranks_here);

}  // namespace gxp
