// Totals over all rows of a run.
#pragma once

#include <cstdint>
#include <span>

#include "lib/tools/colltest/result.h"

namespace gxp {

struct Totals {
  uint64_t wrong = 0;          // elements
  uint64_t out_of_bounds = 0;  // guard words
  double busbw = 0;            // GB/s, the mean over both placements of all rows that move data
};

// By the time of the slowest rank, or as `average` says.
Totals totals_of(std::span<const CaseResult> results, int world_size,
                 Average average = Average::kMax);

}  // namespace gxp
