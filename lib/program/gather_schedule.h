// When the parameters of an FSDP unit are gathered and freed, where ranks hold shards of them: a
// pure function of the order in which a program reads FSDP units, and of limits.
// Sources: DeepSpeed's stage3_* settings and FSDP's prefetching (https://www.deepspeed.ai/docs/
// config-json/, https://pytorch.org/docs/stable/fsdp.html); the whole order is known here, so none
// of it is recorded while it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/config/parallel_config.h"
#include "lib/shard/layout.h"

namespace gxp {

// Counts are of parameters, padding included.
struct GatherLimits {
  bool forward_prefetch = true;  // while the unit before runs; else when it is needed
  BackwardPrefetch backward_prefetch = BackwardPrefetch::kPre;
  int wraps_ahead = 1;            // that are gathered before the operation that reads them
  uint64_t max_ahead = 0;         // parameters of those; 0: no limit
  uint64_t max_live = 0;          // gathered at a time, where more are not needed; 0: no limit
  uint64_t persist_below = 0;     // FSDP units of at most so many stay until the step ends
  uint64_t reuse_within = 0;      // FSDP units stay if so few are read before they are read again
  bool hold_over_micros = false;  // FSDP units stay from a backward pass to the next forward pass
};

// An operation that reads gathered parameters, in the order of the program.
struct ParameterUse {
  std::vector<int> wraps;  // none: it reads none
  int micro = 0;
  bool backward = false;
};

// The uses of a training step: for each micro-batch the units before the head, the head, and the
// units before it backwards, down to the lowest that is trained. A forward pass (`backward` false)
// has the first half.
std::vector<ParameterUse> parameter_uses(const Architecture& architecture,
                                         const ParameterLayout& layout, int micros, bool backward);

// FSDP units that are gathered before and after an operation, and freed after it.
struct GatherPoint {
  std::vector<int> before, behind, freed;
};

// By use. Parameters that an operation reads are always gathered before it. Parameters are freed
// after they were read, unless they are kept: for the backward pass of the micro-batch (without
// `reshard`), or because a limit says so. Parameters that the backward pass reads first are always
// kept for it, and so are parameters that are read again before any others.
//   Cost  uses^2 in the worst case, for large limits.
std::vector<GatherPoint> schedule_gathers(const std::vector<ParameterUse>& uses,
                                          const ParameterLayout& layout, bool reshard,
                                          const GatherLimits& limits);

}  // namespace gxp
