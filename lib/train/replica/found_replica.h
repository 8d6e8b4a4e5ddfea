// The newest replica of which the hosts that are there hold all parts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/ckpt/native/checkpoint.h"

namespace gxp {

class Communicator;

struct FoundReplica {
  Checkpoint checkpoint;     // its files are on the hosts of their readers
  std::vector<int> readers;  // of each file, a rank that has it; the same on all ranks
};

// [collective] `directory`: of HostReplicas, on each host its own. Nothing if no replica is newer
// than the step `saved`; the log of rank 0 names one that is newer but not whole. Errors:
// HostReplicas's.
std::optional<FoundReplica> find_replica(const std::string& directory, int ranks_per_host,
                                         uint64_t saved, Communicator& communicator);

}  // namespace gxp
