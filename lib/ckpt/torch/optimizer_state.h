// The state of torch.optim's optimizers, by parameter name.
//
// optimizer.state_dict() is {"state": {index: {"step", "exp_avg", ...}}, "param_groups":
// [{"params": [index...], settings}]}: parameters are numbers, in the order in which the optimizer
// got them.
// Names come, in this order,
//   - from the keys of "state", if they are texts (as get_optimizer_state_dict makes them);
//   - from "param_names" of the groups (torch 2.6 and later, an optimizer made of
//     named_parameters());
//   - from the weights: each group has its parameters in the model's order, as parameters() and
//     filters of it give them. Weights that are no parameters are passed over: types that have no
//     gradient, the statistics of batch norms, and a weight that is another one's again (a tied
//     head). This counts only if the shapes leave one possibility.
// Source: torch 2.15, torch/optim/optimizer.py; Adafactor's names: transformers 5.23.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/torch_archive.h"

namespace gxp {

struct OptimizerKey {
  std::string_view key;  // in an entry of "state"
  Role role;
};
constexpr std::array<OptimizerKey, 5> kOptimizerKeys = {{{"exp_avg", Role::kAdamM},
                                                         {"exp_avg_sq", Role::kAdamV},
                                                         {"momentum_buffer", Role::kMomentum},
                                                         {"exp_avg_sq_row", Role::kRowMeans},
                                                         {"exp_avg_sq_col", Role::kColumnMeans}}};

struct OptimizerTensors {
  std::vector<NamedTensor> tensors;  // by parameter, then in the order of kOptimizerKeys
  // Groups, steps, and what cannot be kept: all tensors if names cannot be told, and keys of
  // parameters' states other than those and "step".
  OptimizerRecord record;
};

// A weight, and whether it shares its storage with an earlier one.
struct OptimizerWeight {
  TensorInfo info;
  bool is_tied = false;
};

// A step that a file has as a number; nothing if it is no whole number from 0 to 2^53, beyond which
// a double does not count.
std::optional<uint64_t> whole_step(std::optional<double> step);

// `optimizer` is a state_dict() of torch.optim. kCorrupt, naming `where`; kIo.
OptimizerTensors read_optimizer_state(const TorchArchive& archive, PickleValue optimizer,
                                      const std::vector<OptimizerWeight>& weights,
                                      const std::string& where);

}  // namespace gxp
