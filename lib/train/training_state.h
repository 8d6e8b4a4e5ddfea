// Saving and resuming a run: the trainer's state as a checkpoint in gxp's own format.
#pragma once

#include "lib/ckpt/named_tensors.h"
#include "lib/collective/communicator.h"
#include "lib/train/trainer.h"

namespace gxp {

// [collective] Every rank writes an even share of each tensor; rank 0 publishes. Returns when the
// checkpoint is complete and durable. `settings` are the run's, flattened. Errors: kIo on the rank
// that cannot write, kPeer on the others; older checkpoints are as they were.
void save_state(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                const KeyValues& settings);

// [collective] Fills the trainer from the newest complete checkpoint in checkpoint.dir, whatever
// the world size that wrote it; its files are verified first, each by one rank. Returns false if
// the directory holds none or does not exist. Errors: kCorrupt; kIo, also if the ranks do not see
// the same checkpoints; kConfig if a setting that decides the model or the order of the data
// differs from the checkpoint's, naming it.
bool resume_state(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                  const KeyValues& settings);

}  // namespace gxp
