// The optimizers: what changes the weights, given the gradients. One row each in table.cc; what
// they keep from step to step is the table of lib/arch/optimizer_state.h, their arithmetic is
// kernels/ops.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/ops.h"
#include "lib/config/run_config.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// A flat range of one tensor with everything an update needs: equally many f32 elements, none
// overlapping another. Borrows.
struct UpdateRange {
  Tensor weights;
  std::vector<Tensor> kept;  // in the order of kept_states(); zero before step 1
  ConstTensor gradients;
  bool decay = true;  // a part of a tensor of two or more dimensions
};

struct UpdateStep {
  int64_t step;           // from 1
  double lr;              // learning rate
  double gradient_scale;  // multiplied into the gradients first (clipping)
};

// Not thread-safe, as Ops is not. Ranges may be cut in any way and may be empty: the bits do not
// depend on the cuts.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void update(const UpdateRange& range, const UpdateStep& step) = 0;
};

// The one that optim.name names. `ops` outlives it. kConfig if there is none of that name.
std::unique_ptr<Optimizer> make_optimizer(Ops& ops, const OptimConfig& config);

}  // namespace gxp
