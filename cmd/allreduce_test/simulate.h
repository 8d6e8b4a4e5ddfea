// gxp allreduce-test --simulate: what cases would take on a cluster.
#pragma once

#include "cmd/allreduce_test/options.h"

namespace gxp {

// Reads the cluster, simulates and prints; starts no ranks.
void simulate_cases(const AllreduceOptions& options, const JobSettings& job);

}  // namespace gxp
