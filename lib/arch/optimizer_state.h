// What each optimizer keeps of the parameters from step to step and needs for its update, as a
// table. The step program's memory, checkpoints and the optimizers themselves read it. Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/config/run_config.h"

namespace gxp {

// One kind of state, f32.
struct KeptState {
  std::string_view name;  // "first moments", of its buffer
  std::string_view role;  // "adam_m", the checkpoint's word for it
  // The shape of a tensor's; empty if none is kept of it, as of a frozen one.
  std::vector<size_t> (*shape)(const UnitSpec& unit, const TensorSpec& tensor);
  bool of_all = true;       // an element for each element of every tensor
  bool everywhere = false;  // not sharded: small, and of a shape that shards do not cut
};

struct OptimizerSpec {
  std::vector<KeptState> kept;  // in the order in which lib/optim/optimizer.h takes them
  // Whether an update needs the whole tensor, which ranks that hold shards of it gather first.
  // nullptr: of no tensor.
  bool (*sees_whole)(const UnitSpec& unit, const TensorSpec& tensor) = nullptr;
  // Bytes of workspace for such a tensor, a multiple of 8.
  size_t (*workspace_bytes)(const TensorSpec& tensor) = nullptr;
};

// Of a model with frozen tensors, nothing is kept of those. kConfig if optim.name is unknown.
OptimizerSpec make_optimizer_spec(const OptimConfig& optim, bool some_are_frozen = false);

// Whether an update needs any of the unit's tensors whole, and the most workspace for one.
bool sees_whole(const OptimizerSpec& optimizer, const UnitSpec& unit);
size_t workspace_bytes(const OptimizerSpec& optimizer, const UnitSpec& unit);

// Outputs per input of the linear map that a matrix of a block is.
double outputs_per_input(const Architecture& architecture, const TensorSpec& matrix);

}  // namespace gxp
