// What DeepSpeed's *_model_states.pt tell: the parameters in the order in which the flat partitions
// have them, what is not partitioned, and the run.
//
//   module                  the state dict in the training's type; in stage 3 parameters are empty
//   param_shapes            [{name: torch.Size}]: a dict a group, in stage 3 a sub-group
//   frozen_param_shapes     {name: torch.Size} of the weights without gradients, or None
//   frozen_param_fragments  {name: tensor}: the whole, in stage 3 this rank's part
//   buffer_names, shared_params {alias: owner}, global_steps, global_samples, dp_world_size, ...
//   and at the top what the client's program has added
//
// Weights that are not partitioned are
//   frozen parameters, in the training's type; in stage 3 rank r has the elements from r * p on,
//     p = count / world size rounded up;
//   buffers, bf16 and f16 ones as f32, as DeepSpeed's zero_to_fp32 gives them;
//   whatever else the module has: stage 1 does not say which parameters are frozen.
// Stage 0 has one such file, with the optimizer in it and without param_shapes.
// Source: deepspeed 0.19.8, runtime/engine.py (_common_checkpoint_state), utils/zero_to_fp32.py.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

struct ZeroParameter {
  std::string name;
  std::vector<uint64_t> shape;
  uint64_t count = 0;
  friend bool operator==(const ZeroParameter&, const ZeroParameter&) = default;
};
using ZeroGroup = std::vector<ZeroParameter>;

struct ZeroModel {
  std::vector<ZeroGroup> groups;                            // of distinct names
  std::vector<NamedTensor> others;                          // weights that are not partitioned
  std::vector<std::pair<std::string, std::string>> shared;  // alias, owner
  std::vector<std::string> order;                           // names in the module
  // step (global_steps), samples_consumed, world_size and metadata (numbers and texts at the top).
  NamedTensors run = {};
  uint64_t file_bytes = 0;  // of all the files
  // With zero_optimization.round_robin_gradients the parameters as the module has them, by which
  // their places in the partitions are checked; else none.
  std::vector<NamedTensor> module = {};
};

// One path, or in stage 3 one a rank. Errors: kIo; kCorrupt, naming the file and the reason: no
// such content, ranks that do not agree, a number of ranks that is not dp_world_size, tensor
// parallelism.
ZeroModel read_model_states(const std::vector<std::string>& paths, bool is_stage_3);

// Stage 0, which partitions nothing: the module's weights, and the optimizer of torch.optim in the
// same file. The optimizer state of 16-bit training, whose fp32 weights lie in flat groups, is not
// read; OptimizerRecord::lost says so. Errors: the same.
NamedTensors read_unpartitioned(const std::string& path);
// Whether the file is of stage 0, as the run's settings in it say.
bool is_unpartitioned(const std::string& path);

// Puts the groups of parameters that the optimizer lists, by number, into `result` with
// the names that the shapes have; a warning says so if they are unknown.
void keep_groups(std::vector<ParameterGroup> groups, const std::vector<ZeroGroup>& shapes,
                 const std::string& where, NamedTensors& result);

// Adds missing aliases as copies of their owners, and puts all in the module's order. kCorrupt,
// naming `where`: a duplicate name, a missing owner.
void finish_weights(const ZeroModel& model, const std::string& where,
                    std::vector<NamedTensor>& tensors);

}  // namespace gxp
