// The kinds of tensors in a DCP checkpoint: weights, optimizer state, or a count of steps.
//
// Optimizer state is what lies under a key "state", as get_optimizer_state_dict() makes it: PATH/
// state/PARAMETER/exp_avg (optimizer_state.h has the keys), or flattened, PATH/"state.PARAMETER.
// exp_avg". It is the state of the weight with that name. Everything else is a weight, and its name
// is its path without the part that all weights have in common, or, where they have none ("model"
// and "ema"), without what leads to the one "model", "state_dict", "model_state_dict" or "module".
// If names would then meet, the weights keep their whole keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/ckpt/torch/dcp_metadata.h"

namespace gxp {

enum class DcpUse : uint8_t {
  kWeight,
  kOptimizer,
  kStep,     // one number: an optimizer's "step", or a "step" (global_step, iteration, iter_num)
             // that is no model's
  kLeftOut,  // optimizer state of another kind, or of a parameter that is a number
};

struct DcpName {
  DcpUse use = DcpUse::kWeight;
  Role role = Role::kWeight;
  std::string name = {};       // of the weight, or of the one that an optimizer's step is for
  std::string parameter = {};  // what the optimizer calls that weight
};

// A setting of a group of parameters, or its list of them:
//   PATH/param_groups/0/lr           of the group 0; its "params" are names
//   PATH/"param_groups.PARAMETER.lr"  of one parameter, as flatten_optimizer_state_dict has it
struct DcpSetting {
  std::string group;  // "0", or the parameter
  std::string key;
};
std::optional<DcpSetting> dcp_setting(const std::string& key);

// One name for each tensor, in the same order.
std::vector<DcpName> name_dcp_tensors(const std::vector<DcpTensor>& tensors);

// Whether the entry at `path`, which is no tensor, counts steps.
bool is_dcp_step(const std::vector<std::string>& path);
// Whether the entry at `path` is a part of an optimizer's state.
bool is_dcp_optimizer_state(const std::vector<std::string>& path);

}  // namespace gxp
