// What one rank's *_optim_states.pt holds: its partitions of the fp32 master weights and of what
// the optimizer keeps.
//
//   {"optimizer_state_dict": {
//      "zero_stage": ZeroStageEnum(n) or n; missing: 1 (BF16_Optimizer)
//      stages 1, 2: "single_partition_of_fp32_groups": [1-D tensor a group],
//                   "base_optimizer_state": {"state": {g: {"step", "exp_avg", "exp_avg_sq"}}}, or,
//                     as elastic checkpoints have it, the list of those; the partitions' padding
//                     is not cut off there; the dict also has "param_groups", the settings
//                   "clip_grad"
//                   "group_paddings", "param_alignment_paddings", "partition_count" (lists),
//                   "param_slice_mappings": [{name: fragment_address(numel, start)}]
//      stage 3:     "fp32_flat_groups": [1-D tensor a sub-group], "partition_count" (a number),
//                   "optimizer_state_dict": {"state": ...}}}
//
// Source: deepspeed 0.19.8, runtime/zero/stage_1_and_2.py and stage3.py (state_dict).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/optimizer_settings.h"
#include "lib/ckpt/torch/torch_archive.h"

namespace gxp {

struct ZeroSlice {
  uint64_t start = 0;  // in the rank's partition
  uint64_t count = 0;
};

// One group; one-dimensional tensors of consecutive elements.
struct ZeroPartition {
  std::map<Role, NamedTensor> tensors;  // kWeight is the master weights
  std::optional<uint64_t> padding = {};
  std::optional<std::vector<uint64_t>> alignment = {};  // elements after each parameter
  std::optional<std::map<std::string, ZeroSlice>> slices = {};
};

struct OptimStates {
  std::string where;  // "read FILE"
  int stage = 0;
  std::vector<ZeroPartition> partitions;  // by group
  std::optional<uint64_t> step = {};      // of the optimizer, where all groups have one
  OptimizerGroups settings = {};
  std::vector<ParameterGroup> groups = {};  // without names
  std::vector<std::string> lost = {};       // as OptimizerRecord::lost
  uint64_t file_bytes = 0;
};

// Errors: kIo; kCorrupt, naming the file and the reason: no such content, partitions that claim
// more bytes than the file has, a group that is split over another number than `ranks`, as the
// parameters of experts are.
OptimStates read_optim_states(const std::string& path, size_t ranks);

// ZeroStageEnum(n) or n, 1 to 3. kCorrupt, naming `where`.
int read_zero_stage(PickleValue value, const std::string& where);
// A number of steps, or a tensor of the archive that holds one. kCorrupt, naming `where`.
uint64_t read_step(const TorchArchive& archive, PickleValue value, const std::string& where);

}  // namespace gxp
