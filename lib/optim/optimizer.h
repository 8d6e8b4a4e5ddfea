// The optimizers update the weights from the gradients. Each has a row in
// lib/arch/optimizers.inc, which names its state; the arithmetic is in kernels/ops.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/ops.h"
#include "lib/config/run_config.h"
#include "lib/device/device.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// The device, stream and operations of an optimizer. Borrows.
struct ComputeLane {
  Device& device;
  Stream& stream;  // of the device; what `ops` starts is queued there
  Ops& ops;
};

// A flat range of one tensor with everything an update needs. All members have as many elements,
// except for state that blocks of elements share, where the range is whole blocks. They are f32
// (gradients may be halves, state has the type in OptimizerSpec) and do not overlap. Borrows.
struct UpdateRange {
  Tensor weights;
  // In the order of OptimizerSpec::kept; zero before step 1, empty where none is kept.
  std::vector<Tensor> kept;
  ConstTensor gradients;
  bool decay = true;  // weight decay applies to it
  // For state that is rounded stochastically: a key of the run's seed and the tensor, and the number
  // of the range's first element in that.
  uint64_t key = 0;
  size_t first = 0;
};

struct UpdateStep {
  int64_t step;           // from 1
  double lr;              // learning rate
  double gradient_scale;  // multiplied into the gradients first (clipping)
};

// A whole tensor, for an optimizer that cannot work on ranges of it. Borrows.
struct WholeTensor {
  Tensor direction;          // in the tensor's shape
  std::vector<Tensor> kept;  // as above, but empty where it is sharded
  Memory workspace;          // OptimizerSpec::workspace_bytes
  double outputs_per_input;  // of the linear map, for a matrix of a block
};

// Updates ranges, whose gradients have one type, from these and the optimizer's state. Not
// thread-safe, as Ops is not. Ranges may be cut in any way and may be empty: the bits do not depend
// on the cuts.
class RangeOptimizer {
 public:
  virtual ~RangeOptimizer() = default;
  virtual void update(std::span<const UpdateRange> ranges, const UpdateStep& step) = 0;
};

// Updates tensors that it must see whole, in three steps: each range is prepared, the directions of
// all ranges are gathered (from all ranks, if they hold shards) and transformed, and each range is
// moved along its part of the result. Threads and cuts as above.
class WholeOptimizer {
 public:
  virtual ~WholeOptimizer() = default;
  // direction = the tensor to gather.
  virtual void prepare(const Tensor& direction, const UpdateRange& range,
                       const UpdateStep& step) = 0;
  virtual void transform(const WholeTensor& whole, const UpdateStep& step) = 0;
  // `range.gradients` holds the range's part of the transformed direction.
  virtual void apply(const UpdateRange& range, const UpdateStep& step) = 0;
};

// `whole` for the tensors that OptimizerSpec::needs_unsharded names, `ranges` for the others; empty
// where there are none.
struct Optimizer {
  std::unique_ptr<RangeOptimizer> ranges = {};
  std::unique_ptr<WholeOptimizer> whole = {};
};

// The optimizer of optim.name; the objects of `lane` outlive it. kConfig if the name is unknown.
Optimizer make_optimizer(const ComputeLane& lane, const OptimConfig& config);

}  // namespace gxp
