// The modes of `gxp allreduce-test` besides a measurement of operations. Each throws kUsage, kIo or
// kConfig with a message that says why.
#pragma once

#include <span>

#include "cmd/allreduce_test/options.h"

namespace gxp {

// --explain: prints the plans of all cases and the steps of the last, on hosts that share memory
// where a chosen transport's row says `shares_memory`; draws the steps if asked to. No ranks start.
void explain_cases(const AllreduceOptions& options, const JobSettings& job,
                   const Environment& environment, int world_size,
                   std::span<const BenchCase> cases);

// --calibrate: starts the ranks, or is one, and measures among all of them. Rank 0 merges the
// result into the profile file, or replaces one of another machine or with errors, and prints it.
// Returns the exit code.
int calibrate_ranks(const AllreduceOptions& options, JobSettings job,
                    const Environment& environment, int world_size);

// --simulate: reads the cluster or the profile, simulates the cases and prints. Starts no ranks.
void simulate_cases(const AllreduceOptions& options, const JobSettings& job,
                    const Environment& environment);

// --show-record: prints the last operations of each rank, and which rank came last to them, from
// the files that the ranks left.
void show_record(const AllreduceOptions& options);

}  // namespace gxp
