// What each optimizer keeps of the parameters from step to step, as a table. The step program's
// memory, checkpoints and the optimizers themselves read it. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "lib/config/run_config.h"

namespace gxp {

// One kind of state: an f32 element for each element of every tensor.
struct KeptState {
  std::string_view name;  // "first moments", of its buffer
  std::string_view role;  // "adam_m", the checkpoint's word for it
};

// In the order in which the optimizer (lib/optim/optimizer.h) takes them. kConfig if optim.name is
// unknown.
std::vector<KeptState> kept_states(const OptimConfig& optim);

}  // namespace gxp
