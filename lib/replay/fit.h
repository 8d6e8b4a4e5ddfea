// What to change so that a run fits into a memory. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/config/run_config.h"

namespace gxp {

struct Edit {
  std::string settings;  // "train.micro_batch = 2 with train.grad_accum = 4"
  uint64_t bytes = 0;    // the run's peak with it
};

// Up to three, those that change least first; each leaves what is trained as it is, but for the
// order in which numbers are added. Of one kind, such as smaller micro-batches, the smallest change
// that fits. `peak_of` is asked for the peak of variants of `config`.
std::vector<Edit> edits_that_fit(const RunConfig& config, int world_size, uint64_t limit_bytes,
                                 const std::function<uint64_t(const RunConfig&)>& peak_of);

}  // namespace gxp
