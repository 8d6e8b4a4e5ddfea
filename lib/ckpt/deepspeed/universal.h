// DeepSpeed's universal checkpoints, which runs of any number of ranks and any ZeRO stage load
// (load_universal_checkpoint), read and written.
//
//   DIR/latest_universal            the tag, "global_step1000"
//   DIR/TAG/zero/NAME/fp32.pt       a weight; exp_avg.pt and exp_avg_sq.pt its moments, step.pt the
//                                   optimizer's step; other names as kOptimizerKeys has them
//   DIR/TAG/zero/optimizer_state.pt what the optimizer has beside
//   DIR/TAG/*_model_states.pt       as in other checkpoints (model_states.h)
//
// Two dialects. From stages 1 and 2, a file is {"param": tensor, "cat_dim": 0}, and there are
// step.pt and the frozen weights, buffers and aliases as well. From stage 3 it is the flat tensor
// alone: the shapes, frozen weights, buffers and aliases come from the model states, the step from
// optimizer_state.pt. An alias is its owner again in both: the first dialect has it in the
// training's type, rounded. Refused: model states of tensor parallel ranks.
//
// Written is the first dialect, with the bytes and types that the tensors have. Model states
// without a module are there for stages 1 and 2 and for stage 3: DeepSpeed takes no weights from
// them.
// _metadata of the module keeps what gxp knows of the run (pt_metadata.h). The optimizer's settings
// stay the run's own: DeepSpeed pairs the groups of the file with the run's and stops at the end of
// the shorter list, so that there are as many groups as parameters, all without settings.
// DeepSpeed's own schedulers find their last_batch_iteration.
//
// Files are opened for each read, since there may be more of them than a process may open.
// Source: deepspeed 0.19.8, checkpoint/ds_to_universal.py, checkpoint/universal_checkpoint.py,
// runtime/base_optimizer.py and runtime/zero/stage3.py (load_hp_checkpoint_state...).
#pragma once

#include <string>
#include <string_view>

#include "lib/ckpt/format.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// A directory DIR without DeepSpeed's own `latest`, or a DIR/TAG.
bool is_universal(const std::string& path);
// By the path in the directory; with a '/' at its end, whether it is a directory of such files.
bool is_universal_file(std::string_view name);
// Errors: kIo; kCorrupt, naming the file and the reason.
NamedTensors read_universal(const std::string& path);
// Errors: kIo; kConfig: a name that no directory can have, optimizer state of no weight.
void write_universal(const NamedTensors& tensors, const std::string& path,
                     const WriteOptions& options);

}  // namespace gxp
