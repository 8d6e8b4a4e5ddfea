// For a process that fails before its rank has joined the others, which would wait for it until the
// time to join is over: where its data, its configuration or its GPU is not what the others have.
#pragma once

#include <functional>

#include "lib/job/join.h"

namespace gxp {

// Returns what `work` does. If it throws, rank 0's store is told why, unless this rank has joined;
// a launcher tells it for the ranks that it would have started. Tells nothing where the job's ranks
// meet in another way (mpirun), or its launchers wait for each other (max_restarts). Rank 0 may end
// for the same reason: after half a second without it, nobody is told.
int telling_others(const LaunchRequest& request, const Environment& environment,
                   const std::function<int()>& work);

}  // namespace gxp
