// Megatron-LM's folders, recognised so that they are refused by name.
//
//   latest_checkpointed_iteration.txt, iter_0000100/
//   iter_0000100/mp_rank_00/model_optim_rng.pt       "torch", a file for each tensor and pipeline rank
//   iter_0000100/.metadata, common.pt                 "torch_dist", a DCP of Megatron's own keys
//
// Queries, keys and values are one matrix there, interleaved by groups of heads, as are the gate and
// the up projection, and the layers of "torch_dist" are one tensor: gxp has no mapping of these, and
// the keys of its optimizer would pass for weights.
// Source: Megatron-LM, megatron/training/checkpointing.py (get_checkpoint_name).
#pragma once

#include <cstdint>
#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Such a folder, or one of its iterations.
bool is_megatron(const std::string& path);
// Always kCorrupt, with what to do.
[[noreturn]] NamedTensors read_megatron(const std::string& path);

}  // namespace gxp
