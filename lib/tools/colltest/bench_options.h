// How operations are measured: the user's options, for the runner and the table.
#pragma once

#include <cstddef>
#include <optional>

#include "lib/collective/algorithm/call.h"

namespace gxp {

// Sizes from `min_bytes` to `max_bytes`: times `factor` where that is at least 2, else plus
// `step_bytes`.
struct Sweep {
  size_t min_bytes = 32 << 20;
  size_t max_bytes = 32 << 20;
  size_t step_bytes = 1 << 20;
  int factor = 0;  // 0: by steps
};

// The position of the barrier in a timed iteration: nccl-tests' -z 1 to 3.
enum class Pacing { kBarrierTimed = 1, kNoBarrier = 2, kBarrierBefore = 3 };

// nccl-tests' -a: which rank's time counts in an iteration.
enum class Average { kRank0, kMean, kMin, kMax };

struct BenchOptions {
  Sweep sweep{};
  int iterations = 0;  // 0: as many as take half a second, from 15 to 20000
  int warmup = -1;     // -1: 50 up to 64 KiB, else 5
  int calls = 1;       // of one timed iteration, back to back; its time is divided by them
  int cycles = 1;      // each repeats the sizes of a type, reduction and root; 0: for ever
  Pacing pacing = Pacing::kBarrierBefore;
  int checks = 1;   // before the timing; 0: none after it either
  int unalign = 0;  // elements by which the memory is moved from a page boundary
  MemoryOrigin memory = MemoryOrigin::kOrdinary;
  // For the text:
  Average average = Average::kMax;
  bool per_iteration = false;  // columns i_min i_max i_p99 i_cv%; each iteration's time in JSON
  bool timestamps = false;
  std::optional<double> min_busbw{};  // GB/s, what the average is held against
};

}  // namespace gxp
