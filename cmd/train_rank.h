// A process as one of the ranks of `gxp train`.
#pragma once

#include "cmd/run_network.h"
#include "cmd/train_options.h"

namespace gxp {

// Joins the job's ranks and does this rank's part: measures classes of kernels, looks at the model or
// trains. Rank 0 prints the result. Returns the exit code. Errors: run_rank(), check_memory_limit()
// for what is free on the device, and those of the part.
int train_on_rank(const TrainOptions& options, const RunConfig& config, JobSettings job,
                  const PlannedRanks& planned, const Environment& environment);

}  // namespace gxp
