// gxp allreduce-test --explain: what would run, without ranks.
#pragma once

#include <span>

#include "cmd/allreduce_test/options.h"

namespace gxp {

// Prints the plans of all cases and the steps of the last, on hosts that share memory unless the
// transport is tcp; draws the steps if asked to.
void explain_cases(const AllreduceOptions& options, const JobSettings& job,
                   const Environment& environment, int world_size,
                   std::span<const BenchCase> cases);

}  // namespace gxp
