// AdamW with the settings of a run (Loshchilov & Hutter, arXiv:1711.05101). The arithmetic is
// Ops::adamw; this class knows which settings apply to which parameters.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "lib/config/run_config.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// A flat range of parameters with everything an update needs: equally many f32 elements, none
// overlapping another. Borrows.
struct AdamWRange {
  Memory weights;
  Memory first, second;  // the moments; zero before step 1
  ConstMemory gradients;
  bool decay = true;  // the range holds tensors of two or more dimensions
};

// `ops` outlives it. Not thread-safe, as Ops is not. Ranges may be cut in any way: the bits do not
// depend on the cuts.
class AdamW {
 public:
  AdamW(Ops& ops, const OptimConfig& config) : ops_(ops), config_(config) {}
  // Step `step` (from 1) at learning rate `lr`; the gradients are multiplied by `gradient_scale`
  // first (clipping). An empty range is allowed.
  void update(const AdamWRange& range, int64_t step, double lr, double gradient_scale);

 private:
  Ops& ops_;
  OptimConfig config_;
};

}  // namespace gxp
