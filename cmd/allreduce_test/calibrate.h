// gxp allreduce-test --calibrate: measures what the choice of algorithms goes by.
#pragma once

#include "cmd/allreduce_test/options.h"

namespace gxp {

// Starts the ranks, or is one: measures among all of them; rank 0 merges the result into the
// profile file, which a profile of another machine or with errors makes way for, and prints it.
// Returns the exit code. kUsage: there is no file, or one rank; kIo; what calibrate() throws.
int calibrate_ranks(const AllreduceOptions& options, JobSettings job,
                    const Environment& environment, int world_size);

}  // namespace gxp
