// Checks that all ranks read the same data, and that a resumed run reads the data that it has read
// before. A sample's place in the order depends on the number of samples, so other files mean other
// samples on every rank.
#pragma once

#include <string>
#include <vector>

#include "lib/ckpt/native/checkpoint.h"
#include "lib/config/run_config.h"
#include "lib/data/dataset.h"

namespace gxp {

class Communicator;

// [collective] kConfig on every rank, naming the first rank whose files are not rank 0's, the file
// and the difference; paths may differ. `setting`: "data.train". Cost: 32 bytes of each rank.
void check_same_data(const std::vector<DataFingerprint>& mine, const std::string& setting,
                     Communicator& communicator);

// A line of the log for each file, up to eight; then one for all others.
void log_data(const std::vector<DataFingerprint>& data, const std::string& setting);

// What a checkpoint keeps of data.train in CheckpointInfo::state (docs/FORMAT.md).
KeyValues data_state(const std::vector<DataFingerprint>& train);

// Checkpoints that do not record their data pass. `changed` as data.changed has it: with "refuse"
// kConfig, naming the first file that differs and what to do; with "accept" a warning if `reports`.
void check_resumed_data(const Checkpoint& checkpoint, const std::vector<DataFingerprint>& train,
                        ChangedData changed, bool reports);

}  // namespace gxp
