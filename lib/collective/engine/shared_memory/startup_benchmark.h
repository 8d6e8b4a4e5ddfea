// The time that calls in shared memory take here by each of their methods (shared_methods.h),
// measured by NativeEngine::tune() in some milliseconds: at sizes from 256 bytes to twice the L2
// cache.
#pragma once

#include <cstddef>
#include <string>

#include "lib/base/deadline.h"
#include "lib/collective/engine/shared_memory/shared_executor.h"
#include "lib/collective/tune/profile.h"
#include "lib/transport/arena/shared_arena.h"

namespace gxp {

struct StartupBenchmark {
  LinkClass methods;      // the curves of shared_methods.h, of float sums in place
  bool cma = false;       // works between all ranks
  size_t tile_bytes = 0;  // of SharedExecutor::use_tiles_of(), from the ranks' caches
  double seconds = 0;     // that it took
};

// The time that a job spends on it; during other work on the machine up to five times as much.
constexpr double kStartupBenchmarkSeconds = 0.0045;

// [collective] of the executor's ranks, between calls. Measures for `budget_s` seconds; 0: only
// finds out whether CMA works, and the bytes of a tile. All ranks get the same result; without
// curves if the machine was too busy to measure enough. Memory: 5 MiB at most, while it runs.
// Errors: kPeer, kIo.
StartupBenchmark benchmark_startup(SharedExecutor& executor, SharedArena& arena, double budget_s,
                                   Deadline deadline);

// The same among threads of this process that stand for the ranks, each on a CPU of its own where
// there are enough: for a plan without ranks. kIo: no shared memory.
StartupBenchmark benchmark_here(int world_size, bool use_cma,
                                double budget_s = kStartupBenchmarkSeconds);

// "16 KiB: tiles 0.7 us, cma 4.2 us; ...": all-reduces at three sizes, for the log.
std::string summary(const StartupBenchmark& measured);

}  // namespace gxp
