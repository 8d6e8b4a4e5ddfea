// The parts of a checkpoint that ranks write while they train on. Nobody waits, so no gather brings
// the lists of pieces to rank 0: each rank leaves its list in the partial directory as its last
// file, and rank 0 looks for them there.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/ckpt/native/writer.h"

namespace gxp {

// "part-00000-of-00002.json", for a frozen file "frozen-part-...", and the names under which they
// are written.
bool is_part_file(std::string_view name);
std::string part_name(const WriterRank& rank);

// Makes the part durable. `save_id`: of this save alone, the same on all ranks, without a line
// feed, so that what a killed run has left is not taken for it. Errors: as CheckpointWriter's.
void leave_part(const std::string& dir, const WriterRank& rank, const std::string& save_id,
                const FilePart& part);

// The parts of all ranks, in order of rank, when all are there: of their frozen files or of the
// others, as `rank` says. Looks every 20 ms. Empty if `stop` is requested. kIo at the deadline,
// naming the first rank whose part is missing; kCorrupt.
std::vector<FilePart> await_parts(const std::string& dir, const WriterRank& rank,
                                  const std::string& save_id, const std::stop_token& stop,
                                  Deadline deadline);

}  // namespace gxp
