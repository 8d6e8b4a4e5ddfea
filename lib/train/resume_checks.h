// The requirements on a checkpoint to resume from it, and the facts that the run must supply: a
// checkpoint converted from another program records less than one of gxp train.
//
//   step       refused without
//   weights    those of the model, as model_mismatch() says; F64, F16 and BF16 become F32
//   moments    what the optimizer keeps of each tensor that is trained, and nothing else
//   settings   those that must agree do, as far as the checkpoint records them
//   samples    where not recorded, as many as the steps have consumed with this run's batch
// Each thing that the checkpoint does not tell is a line of rank 0's log. One line names what has
// changed: settings of the optimizer, the schedule and the data, and the samples of a step.
#pragma once

#include "lib/arch/architecture.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/config/run_config.h"

namespace gxp {

// `settings` are the run's, flattened. kConfig, naming what is missing or differs and what to do.
void check_resumable(const Checkpoint& checkpoint, const RunConfig& config,
                     const KeyValues& settings, const Architecture& architecture);

// That its weights are those of this run's model. Errors: likewise.
void check_loadable(const Checkpoint& checkpoint, const KeyValues& settings,
                    const Architecture& architecture);

// The tensor with this name, role and shape, of a type that becomes_f32(); in the manifest.
// kConfig: it is not there. Weights are there once either check has returned.
const LogicalTensor& find_resumed(const Checkpoint& checkpoint, const TensorInfo& wanted);

// For all ranks. `samples_per_step`: this run's.
uint64_t samples_before(const CheckpointInfo& info, uint64_t samples_per_step);

// Logs settings that are not recorded or have changed, for one rank.
void report_resumed(const Checkpoint& checkpoint, const RunConfig& config,
                    const KeyValues& settings, uint64_t samples_per_step);

// "optim.lr was 0.001 and is 0.002 now; a step had 8 samples and has 16 now"; "" if no setting that
// affects the steps has changed, as far as the checkpoint records them. Pure.
std::string describe_changes(const CheckpointInfo& info, const KeyValues& settings,
                             uint64_t samples_per_step);

}  // namespace gxp
