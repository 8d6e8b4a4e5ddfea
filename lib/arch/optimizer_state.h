// What an optimizer keeps of the parameters from step to step and needs for its update. The step
// program's memory, checkpoints and the optimizers themselves read it. Which optimizers there are
// is optimizers.h's matter. Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/arch/optim_config.h"

namespace gxp {

// One kind of state, f32.
struct KeptState {
  std::string_view name;  // its buffer's: "first moments"
  std::string_view role;  // the checkpoint's word for it: "adam_m"
  // The shape that is kept for a tensor; empty if none is, as for a frozen one.
  std::vector<size_t> (*shape)(const UnitSpec& unit, const TensorSpec& tensor);
  bool of_all = true;       // an element for each element of every tensor
  bool everywhere = false;  // each rank has it whole: too small to shard, of a shape of its own
};

struct OptimizerSpec {
  std::vector<KeptState> kept;  // in the order in which lib/optim/optimizer.h takes them
  // Whether an update needs the whole tensor, which ranks that hold shards of it gather first.
  // nullptr: it needs none.
  bool (*sees_whole)(const UnitSpec& unit, const TensorSpec& tensor) = nullptr;
  // Bytes of workspace for such a tensor, a multiple of 8.
  size_t (*workspace_bytes)(const TensorSpec& tensor) = nullptr;
};

// Nothing is kept of frozen tensors. kConfig if optim.name is unknown.
OptimizerSpec make_optimizer_spec(const OptimConfig& optim, bool some_are_frozen = false);

// Whether an update needs any of the unit's tensors whole, and the most workspace for one.
bool sees_whole(const OptimizerSpec& optimizer, const UnitSpec& unit);
size_t workspace_bytes(const OptimizerSpec& optimizer, const UnitSpec& unit);

// The outputs per input of the linear map that a matrix of a block is.
double outputs_per_input(const Architecture& architecture, const TensorSpec& matrix);

}  // namespace gxp
