// Parameters out of the ranks' flat partitions.
//
// Stages 1 and 2: the parameters of a group follow each other, each with its alignment padding, and
//   are padded to a multiple of 2 * ranks; rank r has the elements from r * P on, P = that / ranks.
//   Master weights are saved without the padding at the end, moments with it.
// Stage 3: each parameter is split on its own; rank r has the elements from r * p on, p = its count
//   / ranks rounded up, so that its last ranks may have padding. The parts follow each other
//   through a rank's sub-groups, and none is in two of them.
//
// Checked: each rank has the elements that are its own, and no more than a partition; the paddings
// are the ones that follow from the shapes; where param_slice_mappings tell where a parameter lies,
// it is there; in stage 3 the sub-groups are as long in all ranks, and used up. All that a group
// keeps (moments) is there in all ranks, and laid out like its master weights.
// Source: deepspeed 0.19.8, utils/zero_to_fp32.py, runtime/zero/stage_1_and_2.py.
#pragma once

#include <vector>

#include "lib/ckpt/deepspeed/model_states.h"
#include "lib/ckpt/deepspeed/optim_states.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// All parameters of all groups, by parameter, the weight first; by rank, at least one. Takes the
// ranks' tensors. kCorrupt, naming the rank's file and the group.
//
// With round_robin_gradients the flat order is that of the shapes, and param_slice_mappings tell
// another one. So `module` has the parameters again, in the training's type: a weight that is not
// equal to them after rounding is kCorrupt. Empty: the slices are compared. Cost: it reads both.
std::vector<NamedTensor> merge_zero_2(std::vector<OptimStates> ranks,
                                      const std::vector<ZeroGroup>& groups,
                                      const std::vector<NamedTensor>& module);
std::vector<NamedTensor> merge_zero_3(std::vector<OptimStates> ranks,
                                      const std::vector<ZeroGroup>& groups);

}  // namespace gxp
