// What the ways of a call in shared memory take here (shared_ways.h), measured by
// NativeEngine::tune(): they run the calls, at sizes from some bytes to twice the L2 cache, for
// some milliseconds.
#pragma once

#include <cstddef>
#include <string>

#include "lib/base/deadline.h"
#include "lib/collective/engine/shared_memory/shared_executor.h"
#include "lib/collective/tune/profile.h"
#include "lib/transport/arena/shared_arena.h"

namespace gxp {

struct StartupBenchmark {
  LinkClass ways;         // the curves of shared_ways.h, of float sums in place
  bool cma = false;       // works between all ranks
  size_t tile_bytes = 0;  // of SharedExecutor::use_tiles_of(), from the ranks' caches
  double seconds = 0;     // that it took
};

// What a job takes for it; during other work on the machine up to five times as much.
constexpr double kStartupBenchmarkSeconds = 0.0045;

// Measures for `budget_s`; 0: only finds out whether CMA works, and the bytes of a tile. No
// curves: the machine was too busy for as much as is needed. The ranks that `executor` is for call
// it, between calls, and get the same. Memory: 5 MiB at most, while it runs. Errors: kPeer, kIo.
StartupBenchmark benchmark_startup(SharedExecutor& executor, SharedArena& arena, int rank,
                                   int world_size, double budget_s, Deadline deadline);

// The same among threads of this process that stand for the ranks, each on a CPU of its own where
// there are enough: for a plan without ranks. kIo: no shared memory.
StartupBenchmark benchmark_here(int world_size, bool use_cma,
                                double budget_s = kStartupBenchmarkSeconds);

// "16 KiB: tiles 0.7 us, cma 4.2 us; ...": all-reduces at three sizes, for the log.
std::string summary(const StartupBenchmark& measured);

}  // namespace gxp
