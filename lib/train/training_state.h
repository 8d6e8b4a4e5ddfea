// Saving and resuming a run: the trainer's state as a checkpoint in gxp's own format.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "lib/ckpt/native/writer.h"
#include "lib/train/replica/found_replica.h"
#include "lib/train/replica/staged_state.h"
#include "lib/train/trainer.h"

namespace gxp {

class Communicator;

// [collective] Every rank writes an even share of each tensor, those that are frozen to a file of
// their own, which does not change from save to save; rank 0 publishes. Returns when the checkpoint
// is complete and durable. `settings` are the run's, flattened. Errors: kIo on the rank that cannot
// write, kPeer on the others; older checkpoints are as they were.
void save_state(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                const KeyValues& settings);

// Allocates the memory of stage_state() and touches it, so that the first call is not slower.
void reserve_staging(Trainer& trainer, StagedState& staged);
// `staged` keeps its memory from one call to the next. Cost: a copy of the state that this rank
// saves.
void stage_state(Trainer& trainer, const CheckpointInfo& info, StagedState& staged);

// What a checkpoint of the trainer says about the run.
CheckpointInfo checkpoint_info(Trainer& trainer, int world_size, const RunConfig& config,
                               const KeyValues& settings);

// The files that each rank writes (WriterRank::frozen), in the order of a checkpoint.
std::vector<bool> files_of_a_rank(const Architecture& architecture);

// In forward order.
std::vector<std::string> names_of(const Architecture& architecture);

// On rank 0: arranges the parts of all ranks as checkpoint.layout says; `rank` tells whether they
// are the frozen files or the others. Empty if `stop` is requested. Errors: join_parts()'s.
std::vector<FilePart> lay_out(std::vector<FilePart> parts, const CheckpointConfig& checkpoint,
                              const WriterRank& rank, const std::vector<std::string>& names,
                              const std::stop_token& stop);

Retention retention_of(const CheckpointConfig& checkpoint);

// [collective] Fills the trainer from the newest complete checkpoint in checkpoint.dir, whatever
// the world size and the program that wrote it. All ranks together read each byte once
// (shared_reading.h), and each file's hash is checked before this returns on any rank. Returns
// false if the directory holds none or does not exist. Errors, after which the trainer is of no
// use: kCorrupt; kIo, also if the ranks do not see the same checkpoints; kConfig as resume_checks.h
// and data_checks.h say.
bool resume_state(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                  const KeyValues& settings);

// [collective] The same from a replica. Errors: likewise.
void resume_replica(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                    const KeyValues& settings, const FoundReplica& replica);

// [collective] Fills the weights alone, in the same way; `settings` are the run's, flattened.
// Returns the checkpoint's step. Errors: likewise; kIo also if there is none.
uint64_t load_newest_weights(RankModel& model, Communicator& communicator,
                             const KeyValues& settings);

}  // namespace gxp
