// DeepSpeed's own checkpoints (ZeRO stages 1, 2 and 3), read.
//
// The fp32 master weights are the weights, as DeepSpeed's zero_to_fp32 has them; frozen parameters
// and buffers are as model_states.h says; shared parameters are there under each of their names.
// exp_avg and exp_avg_sq are Adam's moments, momentum_buffer is a momentum. The step is the
// optimizer's, or, where its groups do not have the same one, global_steps. Not written: that would
// take pickled classes of DeepSpeed; a run of DeepSpeed starts from its universal format
// (universal.h).
//
// Every rank's file stays open, once. Elements are read from the ranks that have them.
// Source: deepspeed 0.19.8, utils/zero_to_fp32.py.
#pragma once

#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// A directory with a file `latest` that names a directory of ZeRO files, or one of those itself.
bool is_zero_checkpoint(const std::string& path);
// Errors: kIo; kCorrupt, naming the file and the reason.
NamedTensors read_zero_checkpoint(const std::string& path);

}  // namespace gxp
